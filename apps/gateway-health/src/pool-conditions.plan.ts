import { annotations, type GatewayPoolNode } from '@unbounded/crds';
import { type Ineligible, isSelectorProtected, listed, quote } from '@unbounded/membership';

import type { Outsider, PoolPlan } from './gateways.plan.ts';
import type { NotForwarding } from './stated-forwarding.ts';

export interface PoolCondition {
  readonly type:
    | 'GatewaysAvailable'
    | 'NodesEligible'
    | 'GatewaysReporting'
    | 'GatewaysForwarding'
    | 'SelectorProtected'
    | 'ExternalNamesResolved'
    | 'Deletable';
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
}

/** A gateway's agent writes every 13 s; three missed writes mean that it does not reach the API server. */
const REPORT_STALE_MS = 40_000;

const remedy: Readonly<Record<Ineligible, string>> = {
  NoPublicKey: 'has no usable WireGuard key (the node agent writes it; see the Node’s condition UnboundedNodeAccepted)',
  NoExternalIP: `has no external address, which a pool of type External needs: kubectl annotate node NODE ${annotations.externalAddress}=ADDRESS-OR-DNS-NAME`,
  InOtherPool: 'is a gateway of another pool, whose name sorts first',
};

const availability = ({ gateways, withoutPort }: PoolPlan): PoolCondition => {
  const type = 'GatewaysAvailable';
  if (withoutPort.length > 0) {
    return {
      type,
      status: 'False',
      reason: 'PortsExhausted',
      message: `no UDP port from 51821 to 55219 is free for ${listed(withoutPort)}`,
    };
  }
  if (gateways.length === 0) {
    return {
      type,
      status: 'False',
      reason: 'NoGateways',
      message: 'no node that spec.nodeSelector selects can be a gateway',
    };
  }
  return { type, status: 'True', reason: 'Available', message: `${gateways.length} gateways` };
};

const eligibility = ({ outsiders }: PoolPlan): PoolCondition => {
  const type = 'NodesEligible';
  if (outsiders.length === 0)
    return { type, status: 'True', reason: 'Eligible', message: 'every selected node is a gateway' };
  const describe = ({ node, reason }: Outsider): string => `${node} ${remedy[reason]}`;
  return { type, status: 'False', reason: outsiders[0]!.reason, message: listed(outsiders.map(describe)) };
};

type Voice = 'reporting' | 'not yet' | 'silent' | 'unknown';

/** What was observed of a gateway's report, by name. */
export type ObservedReport = (name: string) => { readonly silentMs: number; readonly isConfirmed: boolean };

/**
 * `unknown`: we have not watched long enough to tell, because this process is new. A gateway joined when its object was made: so
 * long it may take until its agent has written for the first time.
 */
const voiceOf = (object: GatewayPoolNode | undefined, observed: ObservedReport): Voice => {
  if (!object) return 'not yet';
  const { silentMs, isConfirmed } = observed(object.metadata.name);
  if (silentMs >= REPORT_STALE_MS) return 'silent';
  if (object.status?.lastUpdated === undefined) return 'not yet';
  return isConfirmed ? 'reporting' : 'unknown';
};

/** What the pool said before, while we cannot tell. */
const saidBefore = ({ pool }: PoolPlan, type: PoolCondition['type']): PoolCondition | undefined => {
  const before = pool.status?.conditions?.find((condition) => condition.type === type);
  return before && { type, status: before.status, reason: before.reason, message: before.message };
};

const reporting = (
  plan: PoolPlan,
  objects: ReadonlyMap<string, GatewayPoolNode>,
  observed: ObservedReport,
): PoolCondition => {
  const type = 'GatewaysReporting';
  const withVoice = (wanted: Voice): string[] =>
    plan.gateways.map(({ name }) => name).filter((name) => voiceOf(objects.get(name), observed) === wanted);
  const [silent, waiting, unknown] = [withVoice('silent'), withVoice('not yet'), withVoice('unknown')];
  if (silent.length > 0) {
    const message = `no report for more than ${REPORT_STALE_MS / 1000} s: ${listed(silent)}; the last report stays in effect`;
    return { type, status: 'False', reason: 'ReportStale', message };
  }
  const before = unknown.length > 0 ? saidBefore(plan, type) : undefined;
  if (before?.reason === 'ReportStale') return before; // a new leader must not call them well before it has heard them
  if (waiting.length > 0) {
    const message = `joined less than ${REPORT_STALE_MS / 1000} s ago and have not reported yet: ${listed(waiting)}`;
    return { type, status: 'Unknown', reason: 'AwaitingFirstReport', message };
  }
  return { type, status: 'True', reason: 'Reporting', message: 'every gateway has reported' };
};

/** The nodes find out for themselves, and use the others: nothing depends on this. */
const forwarding = ({ gateways }: PoolPlan, notForwarding: NotForwarding): PoolCondition => {
  const type = 'GatewaysForwarding';
  const texts = gateways.flatMap(({ name }) => {
    const why = notForwarding.get(name);
    return why === undefined ? [] : [`${name} (${why})`];
  });
  if (texts.length === 0) return { type, status: 'True', reason: 'Forwarding', message: 'no gateway says otherwise' };
  const message = `${texts.length} of ${gateways.length} gateways do not forward: ${listed(texts, '; ')}`;
  return { type, status: 'False', reason: 'NotForwarding', message };
};

/** Whether a node can make itself a gateway, by labels that its own kubelet may set. */
const protection = ({ pool }: PoolPlan): PoolCondition => {
  const type = 'SelectorProtected';
  if (isSelectorProtected(pool))
    return { type, status: 'True', reason: 'Protected', message: 'no node can make itself a gateway of the pool' };
  const labels = listed(Object.keys(pool.spec.nodeSelector).map(quote));
  const message = `a kubelet can set every label of spec.nodeSelector (${labels}) on its own Node, so a compromised node can make itself a gateway: select by a label node-restriction.kubernetes.io/NAME, or name the nodes in spec.nodeNames`;
  return { type, status: 'False', reason: 'KubeletCanSetLabels', message };
};

/** Whether the DNS names of the gateways have addresses, all of which can be used. */
const resolution = ({ unresolved, halfResolved, refused, damped }: PoolPlan): PoolCondition => {
  const type = 'ExternalNamesResolved';
  if (damped.length > 0) {
    const message = `DNS names or other facts of ${listed(damped)} change too often: changes are taken over late, at most one a minute; what was accepted before stands meanwhile`;
    return { type, status: 'False', reason: 'FactsDamped', message };
  }
  if (unresolved.length === 0 && refused.length > 0) {
    const message = listed(
      refused.map((one) => `node ${one.node}: ${one.message}`),
      '; ',
    );
    return { type, status: 'False', reason: 'AddressNotUsed', message };
  }
  if (unresolved.length === 0) {
    const halves = halfResolved.map(({ node, name, otherFamily }) => `${name} of node ${node} (${otherFamily})`);
    const rest = halves.length === 0 ? '' : `; no answer about the other family: ${listed(halves)}`;
    const message = `every DNS name of a gateway has an address, or none is used${rest}`;
    return { type, status: 'True', reason: 'Resolved', message };
  }
  const texts = unresolved.map(
    ({ node, name, error, addresses }) =>
      `${name} of node ${node} (${error}; ${addresses.length === 0 ? 'it has no other address' : `${listed(addresses)} used meanwhile`})`,
  );
  const message = `not resolved: ${listed(texts)}; correct the annotation ${annotations.externalAddress} or the DNS zone; retried continuously`;
  return { type, status: 'False', reason: 'NameNotResolved', message };
};

/** Why a deleted pool is still there; nothing for one that is not deleted. */
const deletability = ({ pool, gateways }: PoolPlan): PoolCondition[] => {
  if (pool.metadata.deletionTimestamp === undefined || gateways.length === 0) return [];
  const names = listed(gateways.map(({ name }) => name));
  const message = `members: ${names}; the pool goes when no node has the labels of spec.nodeSelector any more`;
  return [{ type: 'Deletable', status: 'False', reason: 'InUse', message }];
};

/** What a pool's status says about its gateways. */
export const planPoolConditions = (
  plan: PoolPlan,
  poolNodes: readonly GatewayPoolNode[],
  { observed, notForwarding }: { readonly observed: ObservedReport; readonly notForwarding: NotForwarding },
): readonly PoolCondition[] => {
  const { generation } = plan.pool.metadata;
  const objects = new Map(poolNodes.map((object) => [object.metadata.name, object]));
  const conditions = [
    availability(plan),
    eligibility(plan),
    reporting(plan, objects, observed),
    forwarding(plan, notForwarding),
    protection(plan),
    resolution(plan),
    ...deletability(plan),
  ];
  return conditions.map((condition) => ({
    ...condition,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  }));
};
