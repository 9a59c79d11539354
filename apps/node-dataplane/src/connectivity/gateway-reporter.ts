import { type AdvertisedRoute, gatewayPoolNodeKind, GROUP_VERSION, sameJson } from '@unbounded/crds';
import { type Cluster, clientOf, isNotFound } from '@unbounded/kube';

/** A gateway says in its GatewayPoolNode what lies behind it, and that it is alive. */
export interface GatewayReporter {
  /** @param routes undefined: the node is no gateway, or does not know yet */
  report(
    routes: Readonly<Record<string, AdvertisedRoute>> | undefined,
    options?: { readonly signal?: AbortSignal },
  ): Promise<void>;
}

const FIELD_MANAGER = 'unbounded-node-dataplane';
/** Others take a gateway for silent after 40 s: two reports may be lost. */
const EVERY_MS = 13_000;

export const createGatewayReporter = (cluster: Cluster, nodeName: string): GatewayReporter => {
  const client = clientOf(cluster, gatewayPoolNodeKind);
  let told: Readonly<Record<string, AdvertisedRoute>> | undefined;
  let toldMs = Number.NEGATIVE_INFINITY;
  return {
    async report(routes, options = {}) {
      if (routes === undefined) return;
      const now = performance.now();
      if (now - toldMs < EVERY_MS && told !== undefined && sameJson(routes, told)) return;
      const status = { lastUpdated: new Date().toISOString(), routes };
      const object = { apiVersion: GROUP_VERSION, kind: 'GatewayPoolNode', metadata: { name: nodeName }, status };
      try {
        await client.apply(object, { subresource: 'status', fieldManager: FIELD_MANAGER, force: true, ...options });
        told = routes;
        toldMs = now;
      } catch (error) {
        // The controller makes the object when it takes the node in, and deletes it with the role.
        if (!isNotFound(error)) throw error;
      }
    },
  };
};
