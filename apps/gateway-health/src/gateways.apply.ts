import { inParallel, type ObjectWrites } from '@unbounded/controller-runtime';
import {
  annotations,
  GATEWAY_TAINT,
  type GatewayPool,
  type GatewayPoolNode,
  type GatewayPoolPeering,
  labels,
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

import type { PoolPlan, RoleChange } from './gateways.plan.ts';
import type { PoolCondition } from './pool-conditions.plan.ts';

const FIELD_MANAGER = 'unbounded-gateway-health';
const PARALLEL_WRITES = 8;

/** What is ours of the object, as a merge patch: what is absent is null there, or it would stay as it was (RFC 7396). */
const oursOf = ({ metadata, spec }: GatewayPoolNode) => ({
  metadata: {
    labels: Object.fromEntries(
      [labels.gatewayPool, labels.node, labels.site].map((name) => [name, metadata.labels?.[name] ?? null]),
    ),
    ownerReferences: metadata.ownerReferences,
  },
  spec: { ...spec, site: spec.site ?? null },
});

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
        message: `not found: ${missing.join(', ')}; the others are joined`,
        ...observed,
      } as const);
};

export interface GatewayWritesOptions {
  readonly clients: GatewayClients;
  readonly recorder: EventRecorder;
  readonly writes: ObjectWrites;
  readonly signal: AbortSignal;
}

/** The writes of one round, each on its own. Each is left out when the object already is as it should be. */
export const createGatewayWrites = ({ clients, recorder, writes, signal }: GatewayWritesOptions) => ({
  poolStatus: (
    { pool, gateways, connectedSites, reachableSites }: PoolPlan,
    conditions: readonly PoolCondition[],
  ): Promise<void> => {
    const fields = { nodes: gateways, nodeCount: gateways.length, connectedSites, reachableSites };
    const options = { fieldManager: FIELD_MANAGER, signal, recorder };
    return writes.attempt(pool, 'the status', () =>
      applyStatus(clients.pools, pool, { fields, conditions }, options).catch(ignoreGone),
    );
  },

  poolFinalizer: ({ pool, gateways }: PoolPlan): Promise<void> =>
    writes.attempt(pool, 'the finalizer', () =>
      setFinalizer(clients.pools, pool, { name: PROTECTION_FINALIZER, isPresent: gateways.length > 0, signal }).catch(
        ignoreGone,
      ),
    ),

  /** Annotation and taint in one patch; a change of the node since it was read makes it a conflict. */
  role: (node: Node, { port, isTainted }: RoleChange): Promise<void> => {
    const { name, uid, resourceVersion } = node.metadata;
    const others = (node.spec?.taints ?? []).filter((taint) => !isGatewayTaint(taint));
    const taints = isTainted ? [...others, GATEWAY_TAINT] : others;
    const portText = port === undefined ? null : String(port);
    const patch = {
      metadata: { uid, resourceVersion, annotations: { [annotations.wireGuardPort]: portText } },
      spec: { taints: taints.length === 0 ? null : taints },
    };
    return writes.attempt(node, 'port and taint', () =>
      clients.nodes.mergePatch(name, patch, { signal }).catch(ignoreGone),
    );
  },

  poolNodes: async (observed: readonly GatewayPoolNode[], desired: readonly GatewayPoolNode[]): Promise<void> => {
    const existing = new Map(observed.map((object) => [object.metadata.name, object]));
    const wanted = new Set(desired.map(({ metadata }) => metadata.name));
    const attempt = (object: GatewayPoolNode, write: () => Promise<unknown>) =>
      writes.attempt(object, 'the object', write);
    await inParallel(desired, PARALLEL_WRITES, async (object) => {
      const old = existing.get(object.metadata.name);
      if (!old) await attempt(object, () => clients.poolNodes.create(object, { signal }));
      else if (!sameJson(oursOf(old), oursOf(object))) {
        const { metadata, spec } = oursOf(object);
        const patch = { metadata: { resourceVersion: old.metadata.resourceVersion, ...metadata }, spec };
        await attempt(object, () =>
          clients.poolNodes.mergePatch(object.metadata.name, patch, { signal }).catch(ignoreGone),
        );
      }
    });
    const gone = observed.filter(({ metadata }) => !wanted.has(metadata.name));
    await inParallel(gone, PARALLEL_WRITES, (object) =>
      attempt(object, () => clients.poolNodes.delete(object.metadata.name, { signal }).catch(ignoreGone)),
    );
  },

  accepted: (object: Joining, missing: readonly string[]): Promise<void> => {
    const client = (
      object.kind === 'GatewayPoolPeering' ? clients.poolPeerings : clients.assignments
    ) as ResourceClient<Joining>;
    const conditions = [acceptance(object, missing)];
    const options = { fieldManager: FIELD_MANAGER, signal, recorder };
    return writes.attempt(object, 'the status', () =>
      applyStatus(client, object, { conditions }, options).catch(ignoreGone),
    );
  },
});
