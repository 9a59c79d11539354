import { inParallel, type ObjectWrites } from '@unbounded/controller-runtime';
import type { ClusterStaticEgressIP, Condition, EgressIPPool, StaticEgressIP } from '@unbounded/crds';
import type { EgressPlan } from '@unbounded/egress';
import { applyStatus, type EventRecorder, ignoreGone, type KubeObject, type ResourceClient } from '@unbounded/kube';

import type { EgressObjects } from '../cluster/egress-objects.ts';

const PARALLEL_WRITES = 8;
const FIELD_MANAGER = 'unbounded-static-egress';

export interface StatusWriteOptions {
  readonly clients: {
    readonly rules: ResourceClient<StaticEgressIP>;
    readonly clusterRules: ResourceClient<ClusterStaticEgressIP>;
    readonly pools: ResourceClient<EgressIPPool>;
  };
  readonly writes: ObjectWrites;
  readonly recorder: EventRecorder;
  readonly pace: (signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

type HasStatus = KubeObject & { readonly status?: { readonly conditions?: readonly Condition[] } };

interface PlannedStatus {
  readonly conditions: readonly Pick<Condition, 'type' | 'status' | 'reason' | 'message'>[];
}

/** One status. What was written here says what the next plan starts from: never on top of a version that this plan did not see. */
const writeStatus = async <T extends HasStatus>(
  client: ResourceClient<T>,
  object: T,
  { conditions, ...fields }: PlannedStatus,
  { writes, recorder, pace, signal }: StatusWriteOptions,
): Promise<void> => {
  const { generation } = object.metadata;
  const stated = conditions.map((condition) => ({
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ...condition,
  }));
  const wanted = { fields, conditions: stated };
  const options = { fieldManager: FIELD_MANAGER, signal, recorder, onlyIfUnchanged: true };
  const paced = {
    ...client,
    apply: async (...request: Parameters<typeof client.apply>) => {
      await pace(signal);
      return client.apply(...request);
    },
  };
  await writes.attempt(object, 'the status', () => applyStatus(paced, object, wanted, options).catch(ignoreGone));
};

type RuleStatus = EgressPlan['ruleStatuses'] extends ReadonlyMap<string, infer S> ? S : never;
type Rules = Pick<EgressObjects, 'rules' | 'clusterRules'>;
type RuleOfAnyKind = StaticEgressIP | ClusterStaticEgressIP;

const keyOf = ({ kind, metadata: { namespace, name } }: RuleOfAnyKind): string =>
  namespace === undefined ? `${kind}/${name}` : `${kind}/${namespace}/${name}`;

/** What the rule has, and addresses that the plan allocates to it further, without owners; undefined: none. */
const withAllocations = ({ status }: RuleOfAnyKind, { addresses, pods }: RuleStatus): PlannedStatus | undefined => {
  const former = status?.addresses ?? [];
  const further = addresses
    .filter(({ address, pool }) => pool !== undefined && !former.some((entry) => entry.address === address))
    .map(({ address, rule, selection, pool }) => ({ address, rule, selection, pool }));
  if (further.length === 0) return undefined;
  const { conditions = [] } = status ?? {};
  const fields = { addresses: [...former, ...further], pods: status?.pods ?? pods };
  return { ...fields, conditions };
};

const writeAllocation = async <T extends RuleOfAnyKind>(
  client: ResourceClient<T>,
  object: T,
  plan: EgressPlan,
  options: StatusWriteOptions,
): Promise<void> => {
  const planned = withAllocations(object, plan.ruleStatuses.get(keyOf(object))!);
  if (planned) await writeStatus(client, object, planned, options);
};

/**
 * After a round that did not reach the statuses. What a pool has given to a rule stands there alone: without it the next plan would find
 * the addresses in slices, as of nobody, and give others.
 */
export const writeAllocations = async (
  { rules, clusterRules }: Rules,
  plan: EgressPlan,
  options: StatusWriteOptions,
): Promise<void> => {
  const { clients } = options;
  await inParallel(rules, PARALLEL_WRITES, (rule) => writeAllocation(clients.rules, rule, plan, options));
  await inParallel(clusterRules, PARALLEL_WRITES, (rule) => writeAllocation(clients.clusterRules, rule, plan, options));
};

/** The statuses of all rules and pools, each on its own; those that are as planned cost nothing. */
export const writeStatuses = async (
  { rules, clusterRules, pools }: Pick<EgressObjects, 'rules' | 'clusterRules' | 'pools'>,
  plan: EgressPlan,
  { isWritten, ...options }: StatusWriteOptions & { readonly isWritten: (rule: string) => boolean },
): Promise<void> => {
  const { clients } = options;
  const writeRules = <T extends RuleOfAnyKind>(client: ResourceClient<T>, objects: readonly T[]) =>
    inParallel(objects, PARALLEL_WRITES, (rule) =>
      isWritten(keyOf(rule))
        ? writeStatus(client, rule, plan.ruleStatuses.get(keyOf(rule))!, options)
        : writeAllocation(client, rule, plan, options),
    );
  await writeRules(clients.rules, rules);
  await writeRules(clients.clusterRules, clusterRules);
  await inParallel(pools, PARALLEL_WRITES, (pool) =>
    writeStatus(clients.pools, pool, plan.poolStatuses.get(pool.metadata.name)!, options),
  );
};
