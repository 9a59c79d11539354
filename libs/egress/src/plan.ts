import type { EgressNodeSliceSpec } from '@unbounded/crds';

import { planAddresses } from './addresses/addresses.plan.ts';
import type { RuleAddresses } from './addresses/named.plan.ts';
import { createCandidates, createNodeSelection } from './owners/candidates.ts';
import { readGrants } from './owners/grants.ts';
import { type Ownership, planOwners } from './owners/owners.plan.ts';
import { reportedSubnets } from './owners/subnets.ts';
import { compareTexts } from './order.ts';
import { confinePods } from './pods/confined-pods.ts';
import { planCoverage } from './pods/coverage.plan.ts';
import { planSelectedPods, type SelectedPod } from './pods/pod.plan.ts';
import { createRoutes } from './pods/routes.plan.ts';
import { planSelections } from './pods/select.plan.ts';
import { parsePools } from './pools/pool.ts';
import { parseRules } from './rules/parse-rules.ts';
import { type PoolStatus, planPoolStatuses } from './status/pool-status.plan.ts';
import { planRuleStatus, type RuleStatus } from './status/rule-status.plan.ts';
import type { RoutedPod } from './slices/pod-places.ts';
import { planSlices } from './slices/slices.plan.ts';
import type { EgressSnapshot } from './snapshot.ts';

/** All that is to be written, and what explains it. */
export interface EgressPlan {
  /** By KIND/NAMESPACE/NAME, or KIND/NAME for a ClusterStaticEgressIP. */
  readonly ruleStatuses: ReadonlyMap<string, RuleStatus>;
  /** By the name of the pool. */
  readonly poolStatuses: ReadonlyMap<string, PoolStatus>;
  /** By the name of the EgressNodeSlice. */
  readonly slices: ReadonlyMap<string, EgressNodeSliceSpec>;
  /** Pods that at least one rule selects, by UID. */
  readonly selectedPods: ReadonlyMap<string, SelectedPod>;
  /** Routes of those that can be covered, by UID. */
  readonly routedPods: ReadonlyMap<string, RoutedPod>;
  readonly ownerships: ReadonlyMap<string, Ownership>;
  /** By the key of the rule: that of its object and its place in it. */
  readonly ruleAddresses: ReadonlyMap<string, RuleAddresses>;
}

/** Everything in an order of its own, so that the order of the input changes nothing. */
const sorted = (snapshot: EgressSnapshot): EgressSnapshot => {
  const nodes = snapshot.nodes.toSorted((a, b) => compareTexts(a.name, b.name));
  const pods = snapshot.pods.toSorted((a, b) => compareTexts(a.uid, b.uid));
  const slices = snapshot.slices.toSorted((a, b) => compareTexts(a.metadata.name, b.metadata.name));
  return { ...snapshot, nodes, pods, slices };
};

const parseObjects = ({ rules, clusterRules }: EgressSnapshot) =>
  [...rules, ...clusterRules].map(parseRules).toSorted((a, b) => compareTexts(a.object.key, b.object.key));

/** From everything that is known to everything that is to be. Throws for no input; what is wrong becomes a condition. */
export const planEgress = (given: EgressSnapshot): EgressPlan => {
  const snapshot = sorted(given);
  const { nodes, slices } = snapshot;
  const { pods, foreign } = confinePods(snapshot.pods, nodes);
  const parsed = parseObjects(snapshot);
  const rules = parsed.flatMap((own) => own.rules);
  const pools = parsePools(snapshot.pools, snapshot.cluster);
  const { attached: subnets, ignored } = reportedSubnets(slices);
  const select = createNodeSelection(nodes);
  const ruleAddresses = planAddresses(rules, pools, snapshot, { subnets, candidatesOf: select });
  const addresses = [...ruleAddresses.values()].flatMap((own) => own.addresses);

  const candidatesOf = createCandidates(select, subnets);
  const book = readGrants(
    slices,
    parsed.map(({ object }) => object),
    snapshot,
  );
  const { ownerships, owned } = planOwners(addresses, { book, candidatesOf, nodes });

  const selections = planSelections(rules, { ...snapshot, pods });
  const selectedPods = planSelectedPods(pods, selections);
  const routesOf = createRoutes({
    addressesOf: ({ key }) => ruleAddresses.get(key)?.addresses ?? [],
    ownershipOf: (address) => ownerships.get(address),
  });
  const routedPods = [...selectedPods.values()]
    .filter(({ pod }) => !pod.isHostNetwork)
    .map(({ pod, effective }) => ({ pod, routes: routesOf(effective, pod.uid) }));
  const reporters = new Set(addresses.flatMap((address) => candidatesOf(address).selected.map(({ name }) => name)));
  const coverage = planCoverage(selectedPods.values(), { rules, beyond: selections.beyond, foreign });
  const context = {
    addresses: ruleAddresses,
    ownerships,
    ignoredSubnets: ignored,
    coverage,
    selectionProblems: selections.problems,
    now: given.now,
  };
  return {
    ruleStatuses: new Map(parsed.map((own) => [own.object.key, planRuleStatus(own, context)])),
    poolStatuses: planPoolStatuses(pools, ruleAddresses),
    slices: planSlices({ nodes, pods: routedPods, owned, reporters, former: slices }),
    selectedPods,
    routedPods: new Map(routedPods.map((routed) => [routed.pod.uid, routed])),
    ownerships,
    ruleAddresses,
  };
};
