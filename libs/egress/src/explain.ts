import {
  type Address,
  AddressSet,
  containsAddress,
  type Family,
  formatAddress,
  hostPrefix,
  parsePrefix,
} from '@unbounded/ip';

import { familyOf } from './addresses/rule-address.ts';
import type { EgressPlan } from './plan.ts';
import type { KeyedRoute } from './pods/routes.plan.ts';
import type { SelectedPod } from './pods/pod.plan.ts';
import type { EgressPod, EgressSnapshot } from './snapshot.ts';

/** What becomes of a packet of a pod. */
export interface Explanation {
  /** NodeAddress: it leaves as if there were no rules, with the address of the pod’s node. */
  readonly verdict: 'Egress' | 'Dropped' | 'NodeAddress' | 'Inside' | 'UnknownPod';
  /** Key of the rule that decides. */
  readonly rule?: string;
  /** The egress address, and the node that owns it. */
  readonly address?: string;
  readonly owner?: string;
  /** A sentence: why. */
  readonly reason: string;
  /** Rules that select the pod and do not decide, each with the reason. */
  readonly passedOver: readonly { readonly rule: string; readonly reason: string }[];
}

const isInside = ({ cluster, claims, nodes }: EgressSnapshot, destination: Address): boolean =>
  AddressSet.of([
    ...cluster.pods,
    ...cluster.services,
    ...claims.map(({ prefix }) => prefix),
    ...nodes.flatMap(({ addresses }) => addresses.map(hostPrefix)),
  ]).has(destination);

const matches = ({ route }: KeyedRoute, destination: Address): boolean => {
  const holds = (texts: readonly string[]): boolean =>
    texts.some((text) => containsAddress(parsePrefix(text), destination));
  return holds(route.destinations) && !holds(route.except ?? []);
};

const passedOverOf = (
  { effective }: SelectedPod,
  routes: readonly KeyedRoute[],
  destination: Address,
): Explanation['passedOver'] => {
  const winner = routes.findIndex((route) => matches(route, destination));
  return [
    ...routes
      .filter((_, index) => index !== winner)
      .map((route) => ({
        rule: route.route.rule,
        reason: matches(route, destination)
          ? 'another rule takes precedence'
          : 'its destinations do not hold the address',
      })),
    ...effective.shadowed.map(({ rule, by }) => ({ rule: rule.key, reason: `${by.key} takes precedence everywhere` })),
    ...effective.excess.map(({ key }) => ({ rule: key, reason: 'the pod has too many rules' })),
  ];
};

type Decision = Omit<Explanation, 'passedOver'>;

const decisionOf = ({ route }: KeyedRoute, family: Family): Decision => {
  const { rule, whenUnavailable } = route;
  const egress = (route.egress ?? []).find(({ address }) => familyOf(address) === family);
  if (!egress) return { verdict: 'Dropped', rule, reason: `the rule has no IPv${family} address that it can use` };
  const { address, node: owner } = egress;
  if (owner !== undefined) return { verdict: 'Egress', rule, address, owner, reason: `it leaves from node ${owner}` };
  const reason = `no node owns ${address} at present, and whenUnavailable is ${whenUnavailable}`;
  return { verdict: whenUnavailable === 'Node' ? 'NodeAddress' : 'Dropped', rule, address, reason };
};

const ofPod = (plan: EgressPlan, pod: EgressPod, destination: Address): Explanation => {
  const selected = plan.selectedPods.get(pod.uid);
  if (!selected) return { verdict: 'NodeAddress', reason: 'no rule selects the pod', passedOver: [] };
  if (pod.isHostNetwork) {
    const passedOver = selected.selectedBy.map(({ key }) => ({
      rule: key,
      reason: 'it covers no pod with hostNetwork',
    }));
    return { verdict: 'NodeAddress', reason: 'the pod has the network of its node (hostNetwork)', passedOver };
  }
  const routes = plan.routedPods.get(pod.uid)?.routes ?? [];
  const passedOver = passedOverOf(selected, routes, destination);
  const winner = routes.find((route) => matches(route, destination));
  if (!winner) {
    return {
      verdict: 'NodeAddress',
      reason: `no rule of the pod has ${formatAddress(destination)} among its destinations`,
      passedOver,
    };
  }
  return { ...decisionOf(winner, destination.family), passedOver };
};

/** Where packets of a pod to a destination leave, by the routes that the nodes are given. */
export const explain = (
  { plan, snapshot }: { readonly plan: EgressPlan; readonly snapshot: EgressSnapshot },
  who: { readonly namespace: string; readonly name: string },
  destination: Address,
): Explanation => {
  const pod = snapshot.pods.find(({ namespace, name }) => namespace === who.namespace && name === who.name);
  if (!pod)
    return {
      verdict: 'UnknownPod',
      reason: `namespace ${who.namespace} has no scheduled pod ${who.name}`,
      passedOver: [],
    };
  if (isInside(snapshot, destination)) {
    const reason = `${formatAddress(destination)} is a pod, a Service or a node: never steered`;
    return { verdict: 'Inside', reason, passedOver: [] };
  }
  return ofPod(plan, pod, destination);
};
