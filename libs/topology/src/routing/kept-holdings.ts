import { formatPrefix } from '@unbounded/ip';
import type { NodePlan } from '../plan.ts';
import type { Holding } from '../world/holdings.ts';
import type { Member, World } from '../world/world.ts';

/** Who holds what under a plan: recorded with it, and read from one that was kept. */

/** Of plans that were kept by an agent without holdings: what their entries and peers show. */
const shownBy = ({ endpoints, wireGuard, probes }: NodePlan): Holding[] => {
  const found = new Map<string, { keys: Set<string>; prefixes: Set<string> }>();
  const of = (node: string) => {
    const known = found.get(node) ?? { keys: new Set<string>(), prefixes: new Set<string>() };
    found.set(node, known);
    return known;
  };
  for (const { node, publicKey, nextPublicKey } of probes) {
    of(node).keys.add(publicKey);
    if (nextPublicKey !== undefined) of(node).keys.add(nextPublicKey);
  }
  for (const { node, publicKey } of wireGuard.flatMap(({ peers }) => peers)) of(node).keys.add(publicKey);
  for (const { prefix, via } of endpoints) if ('nextHop' in via) of(via.nextHop.node).prefixes.add(prefix);
  return [...found].map(([node, { keys, prefixes }]) => {
    const blocks = [...prefixes];
    const addresses = blocks.flatMap((prefix) => /^(.*)\/(?:32|128)$/.exec(prefix)?.[1] ?? []);
    return { node, keys: [...keys], blocks, addresses };
  });
};

/** Who holds what under a plan. */
export const holdingsOf = (plan: NodePlan | undefined): readonly Holding[] =>
  plan === undefined ? [] : (plan.holdings ?? shownBy(plan));

const holdingOf = ({ name, publicKey, nextPublicKey, podCidrs, nodeAddresses }: Member): Holding => ({
  node: name,
  keys: [publicKey, nextPublicKey].flatMap((key) => key ?? []),
  blocks: podCidrs.map(formatPrefix),
  addresses: nodeAddresses,
});

/** What those hold that concern a node: itself, its peers, and all gateways, by which distances are worked out. */
export const holdingsIn = (world: World, own: Member, peers: ReadonlySet<string>): Holding[] => {
  const gateways = [...world.pools.values()].flatMap((pool) => pool.gateways);
  return [
    own,
    ...[...gateways, ...world.workers.filter(({ name }) => peers.has(name))].filter((m) => m.name !== own.name),
  ]
    .map(holdingOf)
    .sort((a, b) => (a.node < b.node ? -1 : 1));
};
