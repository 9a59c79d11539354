import { formatPrefix } from '@unbounded/ip';
import type { Holding } from '../world/holdings.ts';
import type { Member, World } from '../world/world.ts';

const holdingOf = ({ name, publicKey, nextPublicKey, podCidrs, locator, nodeAddresses }: Member): Holding => ({
  node: name,
  keys: [publicKey, nextPublicKey].flatMap((key) => key ?? []),
  blocks: [...podCidrs, ...(locator ? [locator] : [])].map(formatPrefix),
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
