import { inParallel } from '@unbounded/controller-runtime';
import {
  annotations,
  GATEWAY_TAINT,
  type GatewayPool,
  type GatewayPoolNode,
  type GatewayPoolPeering,
  PROTECTION_FINALIZER,
  sameJson,
  type SiteGatewayPoolAssignment,
} from '@unbounded/crds';
import {
  applyStatus,
  type EventRecorder,
  ignoreGone,
  type Node,
  type ResourceClient,
  setFinalizer,
} from '@unbounded/kube';

import { type PoolPlan, type RoleChange } from './gateways.plan.ts';
import { type PoolCondition } from './pool-conditions.plan.ts';

const FIELD_MANAGER = 'unbounded-gateway-health';
const PARALLEL_WRITES = 8;

export interface GatewayClients {
  readonly nodes: ResourceClient<Node>;
  readonly pools: ResourceClient<GatewayPool>;
  readonly poolNodes: ResourceClient<GatewayPoolNode>;
  readonly assignments: ResourceClient<SiteGatewayPoolAssignment>;
  readonly poolPeerings: ResourceClient<GatewayPoolPeering>;
}

export const isGatewayTaint = ({ key, effect }: { readonly key: string; readonly effect: string }): boolean =>
  key === GATEWAY_TAINT.key && effect === GATEWAY_TAINT.effect;

type Joining = SiteGatewayPoolAssignment | GatewayPoolPeering;

const acceptance = ({ metadata }: Joining, missing: readonly string[]) => {
  const observed = metadata.generation === undefined ? {} : { observedGeneration: metadata.generation };
  return missing.length === 0
    ? ({
        type: 'Accepted',
        status: 'True',
        reason: 'Accepted',
        message: 'all named objects exist',
        ...observed,
      } as const)
    : ({
        type: 'Accepted',
        status: 'False',
        reason: 'NotFound',
        message: `there is no ${missing.join(', ')}; the others are joined`,
        ...observed,
      } as const);
};

/** The writes of one round. Each is left out when the object already is as it should be. */
export const createGatewayWrites = (clients: GatewayClients, recorder: EventRecorder, signal: AbortSignal) => ({
  poolStatus: async (
    { pool, gateways, connectedSites, reachableSites }: PoolPlan,
    conditions: readonly PoolCondition[],
  ) => {
    const fields = { nodes: gateways, nodeCount: gateways.length, connectedSites, reachableSites };
    await applyStatus(
      clients.pools,
      pool,
      { fields, conditions },
      { fieldManager: FIELD_MANAGER, signal, recorder },
    ).catch(ignoreGone);
  },

  poolFinalizer: ({ pool, gateways }: PoolPlan) =>
    setFinalizer(clients.pools, pool, { name: PROTECTION_FINALIZER, isPresent: gateways.length > 0, signal }).catch(
      ignoreGone,
    ),

  /** Annotation and taint in one patch; a change of the node since it was read makes it a conflict. */
  role: async (node: Node, { port, isTainted }: RoleChange): Promise<void> => {
    const { name, uid, resourceVersion } = node.metadata;
    const others = (node.spec?.taints ?? []).filter((taint) => !isGatewayTaint(taint));
    const taints = isTainted ? [...others, GATEWAY_TAINT] : others;
    const portText = port === undefined ? null : String(port);
    const patch = {
      metadata: { uid, resourceVersion, annotations: { [annotations.wireGuardPort]: portText } },
      spec: { taints: taints.length === 0 ? null : taints },
    };
    await clients.nodes.mergePatch(name, patch, { signal }).catch(ignoreGone);
  },

  poolNodes: async (observed: readonly GatewayPoolNode[], desired: readonly GatewayPoolNode[]): Promise<void> => {
    const existing = new Map(observed.map((object) => [object.metadata.name, object]));
    const wanted = new Set(desired.map(({ metadata }) => metadata.name));
    const show = ({ metadata, spec }: GatewayPoolNode) => ({
      labels: metadata.labels,
      owners: metadata.ownerReferences,
      spec,
    });
    await inParallel(desired, PARALLEL_WRITES, async (object) => {
      const old = existing.get(object.metadata.name);
      if (!old) await clients.poolNodes.create(object, { signal });
      else if (!sameJson(show(old), show(object))) {
        const { labels, ownerReferences } = object.metadata;
        const patch = {
          metadata: { resourceVersion: old.metadata.resourceVersion, labels, ownerReferences },
          spec: object.spec,
        };
        await clients.poolNodes.mergePatch(object.metadata.name, patch, { signal });
      }
    });
    const gone = [...existing.keys()].filter((name) => !wanted.has(name));
    await inParallel(gone, PARALLEL_WRITES, (name) => clients.poolNodes.delete(name, { signal }).catch(ignoreGone));
  },

  accepted: async (object: Joining, missing: readonly string[]): Promise<void> => {
    const client = (
      object.kind === 'GatewayPoolPeering' ? clients.poolPeerings : clients.assignments
    ) as ResourceClient<Joining>;
    const conditions = [acceptance(object, missing)];
    await applyStatus(client, object, { conditions }, { fieldManager: FIELD_MANAGER, signal, recorder }).catch(
      ignoreGone,
    );
  },
});
