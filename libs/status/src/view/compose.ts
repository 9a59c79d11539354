import {
  type ClusterView,
  type NodeState,
  type NodeView,
  type PoolView,
  type Problem,
  SEVERITIES,
  type SiteView,
} from './cluster-view.ts';
import { freshReport, isLost, type ViewInputs } from './inputs.ts';
import { composeNodes, observeNodes } from './nodes.ts';
import { ownersOf } from './egress-owners.ts';
import type { Found } from './found.ts';
import { findProblems, inOrder, problemId } from './problems.ts';
import { composeReach } from './reach.ts';

/** The view of the whole cluster, from its objects, the reports of its nodes, and the view before (since when, and what ended). */

const MOST_ENDED = 100;
/** Of one object, and of what one node claims: a node whose problems come and go leaves room for others. */
const MOST_ENDED_OF_ONE = 5;

type Ended = ClusterView['ended'];

/** Of whom a few are kept: of what nodes claim, of each of them, so that one has no others of them forgotten. */
const accountsOf = ({ kind, name, claimants = [] }: Ended[number]): string[] => [
  `${kind}/${name}`,
  ...claimants.map((node) => `claimed by ${node}`),
];

const withEnded = (gone: Ended, before: Ended): Ended => {
  const counts = new Map<string, number>();
  return [...gone, ...before]
    .filter((problem) => {
      const accounts = accountsOf(problem);
      if (accounts.some((account) => (counts.get(account) ?? 0) >= MOST_ENDED_OF_ONE)) return false;
      for (const account of accounts) counts.set(account, (counts.get(account) ?? 0) + 1);
      return true;
    })
    .slice(0, MOST_ENDED);
};

/** All healthy, or all unreachable, or all unknown; else degraded. Of nothing nothing is known. */
const together = (states: readonly NodeState[]): NodeState => {
  const [first] = states;
  if (first === undefined) return 'Unknown';
  return states.every((state) => state === first) ? first : 'Degraded';
};

const ofEntries = <T>(entries: Iterable<readonly [string, T]>): Record<string, T> => Object.fromEntries(entries);

const composeProblems = (found: readonly Found[], before: ClusterView | undefined, now: string) => {
  const problems = new Map<string, Problem>();
  for (const finding of found) {
    const { isOwn: _, ...one } = finding;
    const id = problemId(finding);
    const known = problems.get(id);
    // Of two with one name, of a gateway of two pools for instance, the more severe one stays.
    if (!known || SEVERITIES.indexOf(one.severity) < SEVERITIES.indexOf(known.severity))
      problems.set(id, { ...one, since: before?.problems[id]?.since ?? now });
  }
  const gone = Object.entries(before?.problems ?? {}).flatMap(([id, problem]) =>
    problems.has(id) ? [] : [{ ...problem, until: now }],
  );
  const ended = gone.length === 0 ? (before?.ended ?? []) : withEnded(gone, before?.ended ?? []);
  return { problems, ended };
};

const countByName = (problems: Iterable<Problem>, kind: Problem['kind']): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const problem of problems)
    if (problem.kind === kind) counts.set(problem.name, (counts.get(problem.name) ?? 0) + 1);
  return counts;
};

const composeSites = (
  inputs: ViewInputs,
  nodes: ReadonlyMap<string, NodeView>,
  ofSites: ReadonlyMap<string, number>,
): Record<string, SiteView> => {
  const gateways = new Set(inputs.pools.flatMap((pool) => pool.gateways));
  const bySite = Map.groupBy(inputs.nodes, ({ site }) => site);
  return ofEntries(
    inputs.sites.map(({ name }): [string, SiteView] => {
      const own = bySite.get(name) ?? [];
      const problems = ofSites.get(name) ?? 0;
      const state = together(own.map((node) => nodes.get(node.name)!.state));
      return [
        name,
        {
          state: state === 'Healthy' && problems > 0 ? 'Degraded' : state,
          nodes: own.length,
          reporting: own.filter((node) => freshReport(inputs, node.name)).length,
          gateways: own.filter((node) => gateways.has(node.name)).length,
          problems,
        },
      ];
    }),
  );
};

const composePools = (
  inputs: ViewInputs,
  nodes: ReadonlyMap<string, NodeView>,
  reach: ClusterView['reach'],
): Record<string, PoolView> => {
  const activeFor = new Map<string, Set<string>>();
  for (const [from, ofSite] of Object.entries(reach))
    for (const { via } of Object.values(ofSite))
      for (const gateway of via) activeFor.set(gateway, (activeFor.get(gateway) ?? new Set()).add(from));
  return ofEntries(
    inputs.pools.map(({ name, gateways, connectedSites }): [string, PoolView] => {
      const states = gateways.map((gateway) => nodes.get(gateway)?.state ?? 'Unknown');
      const members = gateways.map((gateway, at): [string, PoolView['gateways'][string]] => [
        gateway,
        { state: states[at]!, activeFor: [...(activeFor.get(gateway) ?? [])].sort() },
      ]);
      return [name, { state: together(states), gateways: ofEntries(members), connectedSites: [...connectedSites] }];
    }),
  );
};

const composeSummary = (
  inputs: ViewInputs,
  nodes: ReadonlyMap<string, NodeView>,
  problems: readonly Problem[],
): ClusterView['summary'] => {
  const of = (severity: Problem['severity']): number =>
    problems.filter((problem) => problem.severity === severity).length;
  const counts = { critical: of('critical'), warning: of('warning'), info: of('info') };
  const state = together([...nodes.values()].map((node) => node.state));
  const isTroubled = counts.critical + counts.warning > 0;
  return {
    state: state === 'Healthy' && isTroubled ? 'Degraded' : state,
    sites: inputs.sites.length,
    nodes: inputs.nodes.length,
    reporting: inputs.nodes.filter(({ name }) => freshReport(inputs, name)).length,
    gateways: new Set(inputs.pools.flatMap(({ gateways }) => gateways)).size,
    problems: counts,
  };
};

/** One time until the end, whoever composes meanwhile: it is no change of the view. */
const objectsTimeOf = (inputs: ViewInputs, before: ClusterView | undefined, now: string): string | undefined =>
  isLost(inputs) ? (before?.objectsTime ?? new Date(Date.parse(now) - inputs.lostMs!).toISOString()) : undefined;

/** @param now RFC 3339 */
export const composeView = (inputs: ViewInputs, before: ClusterView | undefined, now: string): ClusterView => {
  const observed = observeNodes(inputs);
  const composed = composeReach(inputs, before?.reach, now);
  const { reach } = composed;
  const owners = ownersOf(inputs);
  const found = findProblems({ ...composed, inputs, observed, owners });
  const { problems, ended } = composeProblems(found, before, now);
  const all = [...problems.values()];
  const [ofNodes, ofSites] = [countByName(all, 'Node'), countByName(all, 'Site')];
  const nodes = new Map(
    [...composeNodes(inputs, observed)].map(([name, node]) => [name, { ...node, problems: ofNodes.get(name) ?? 0 }]),
  );
  const objectsTime = objectsTimeOf(inputs, before, now);
  return {
    ...(objectsTime === undefined ? {} : { objectsTime }),
    summary: composeSummary(inputs, nodes, all),
    sites: composeSites(inputs, nodes, ofSites),
    pools: composePools(inputs, nodes, reach),
    nodes: ofEntries(nodes),
    reach,
    egress: ofEntries([...owners].map(([address, nodesOf]) => [address, { owners: [...nodesOf] }])),
    problems: ofEntries(problems),
    order: inOrder([...problems]),
    ended,
  };
};
