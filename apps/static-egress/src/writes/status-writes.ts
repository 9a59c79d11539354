import { inParallel, type ObjectWrites } from '@unbounded/controller-runtime';
import {
  type AssignedAddress,
  type ClusterStaticEgressIP,
  type Condition,
  type EgressIPPool,
  MAX_EGRESS_ASSIGNED_ADDRESSES,
  type StaticEgressIP,
} from '@unbounded/crds';
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

/**
 * One status. What was written here says what the next plan starts from: never on top of a version that this plan did not see. Returns
 * the object with it; undefined: the API server did not take it, or the object is gone.
 */
const writeStatus = async <T extends HasStatus>(
  client: ResourceClient<T>,
  object: T,
  { conditions, ...fields }: PlannedStatus,
  { writes, recorder, pace, signal }: StatusWriteOptions,
): Promise<T | undefined> => {
  const { generation } = object.metadata;
  const stated = conditions.map((condition) => ({
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ...condition,
  }));
  const wanted = { fields, conditions: stated };
  const options = { fieldManager: FIELD_MANAGER, signal, recorder, onlyIfUnchanged: true };
  let written: T | undefined;
  const paced = {
    ...client,
    apply: async (...request: Parameters<typeof client.apply>) => {
      await pace(signal);
      written = await client.apply(...request);
      return written;
    },
  };
  await writes.attempt(object, 'the status', async () => {
    const isChanged = await applyStatus(paced, object, wanted, options).catch(ignoreGone);
    if (isChanged === false) written = object;
  });
  return written;
};

type RuleStatus = EgressPlan['ruleStatuses'] extends ReadonlyMap<string, infer S> ? S : never;
type RuleOfAnyKind = StaticEgressIP | ClusterStaticEgressIP;

const keyOf = ({ kind, metadata: { namespace, name } }: RuleOfAnyKind): string =>
  namespace === undefined ? `${kind}/${name}` : `${kind}/${namespace}/${name}`;

interface Further {
  readonly addresses: readonly AssignedAddress[];
  readonly status: PlannedStatus & Pick<RuleStatus, 'addresses' | 'pods'>;
}

/**
 * What pools give to the rule and its status does not have yet: without owners, since no slice names one. What the rule no longer has
 * stays beside it as long as there is room: the slice of its owner is not written yet.
 */
const furtherOf = ({ status }: RuleOfAnyKind, planned: RuleStatus): Further => {
  const { addresses: former = [], pods = 0, conditions = [] } = status ?? {};
  const known = new Set(former.map(({ address }) => address));
  const addresses = planned.addresses
    .filter(({ address, pool }) => pool !== undefined && !known.has(address))
    .map(({ address, rule, selection, pool }) => ({
      address,
      rule,
      selection,
      ...(pool === undefined ? {} : { pool }),
    }));
  const wanted = new Set(planned.addresses.map(({ address }) => address));
  const kept = former.filter(({ address }) => wanted.has(address));
  const ended = former.filter(({ address }) => !wanted.has(address));
  const all = [...kept, ...addresses, ...ended].slice(0, MAX_EGRESS_ASSIGNED_ADDRESSES);
  return { addresses, status: { addresses: all, pods, conditions } };
};

/** Rules with what pools give to them now, and the addresses of which the API server did not take that. */
export interface Allocations extends Pick<EgressObjects, 'rules' | 'clusterRules'> {
  readonly unwritten: ReadonlySet<string>;
}

/**
 * What pools give to rules, before any slice names it: that it is given stands in the status of the rule alone, and a plan that finds
 * an address in slices, as of nobody, gives another one. A rule that is written all the while would walk through its pool so.
 */
export const writeAllocations = async (
  current: Pick<EgressObjects, 'rules' | 'clusterRules'>,
  plan: EgressPlan,
  options: StatusWriteOptions,
): Promise<Allocations> => {
  const { clients } = options;
  const unwritten = new Set<string>();
  const writeKind = async <T extends RuleOfAnyKind>(client: ResourceClient<T>, objects: readonly T[]): Promise<T[]> => {
    const written = [...objects];
    await inParallel([...objects.entries()], PARALLEL_WRITES, async ([index, rule]) => {
      const { addresses, status } = furtherOf(rule, plan.ruleStatuses.get(keyOf(rule))!);
      if (addresses.length === 0) return;
      const now = await writeStatus(client, rule, status, options);
      if (now) written[index] = now;
      else for (const { address } of addresses) unwritten.add(address);
    });
    return written;
  };
  const rules = await writeKind(clients.rules, current.rules);
  const clusterRules = await writeKind(clients.clusterRules, current.clusterRules);
  return { rules, clusterRules, unwritten };
};

/** The statuses of all rules and pools, each on its own; those that are as planned cost nothing. */
export const writeStatuses = async (
  { rules, clusterRules, pools }: Pick<EgressObjects, 'rules' | 'clusterRules' | 'pools'>,
  plan: EgressPlan,
  { isWritten, ...options }: StatusWriteOptions & { readonly isWritten: (rule: string) => boolean },
): Promise<void> => {
  const { clients } = options;
  const writeRules = async <T extends RuleOfAnyKind>(
    client: ResourceClient<T>,
    objects: readonly T[],
  ): Promise<void> => {
    const written = objects.filter((rule) => isWritten(keyOf(rule)));
    await inParallel(written, PARALLEL_WRITES, async (rule) => {
      await writeStatus(client, rule, plan.ruleStatuses.get(keyOf(rule))!, options);
    });
  };
  await writeRules(clients.rules, rules);
  await writeRules(clients.clusterRules, clusterRules);
  await inParallel(pools, PARALLEL_WRITES, async (pool) => {
    await writeStatus(clients.pools, pool, plan.poolStatuses.get(pool.metadata.name)!, options);
  });
};
