import { annotations, type GatewayPool, type Site, type SiteNodeSlice } from '@unbounded/crds';
import { formatPrefix, type Prefix } from '@unbounded/ip';

import { createAddressSettlement } from './address-claims.ts';
import { ageOf } from './age.ts';
import { type Claim, holdersOf, lostPrefixes, type PrefixLoss } from './claims.ts';
import { createConfinement, withBlocks } from './confinement.ts';
import { settleLocators } from './locator-claims.ts';
import type { NodeFacts } from './node-facts.ts';
import type { NodeProblem } from './node-problem.ts';
import { isSelected } from './pool-match.ts';
import { readRecords } from './records.ts';
import type { SettledNode } from './settled-node.ts';
import { indexSites } from './site-match.ts';

/** Everything that decides which node may use which key, address and block. Both controllers see all of it. */
export interface SettlementWorld {
  readonly nodes: readonly NodeFacts[];
  readonly sites: readonly Site[];
  readonly pools: readonly GatewayPool[];
  readonly slices: readonly SiteNodeSlice[];
}

const claimOf = ({ facts }: SettledNode, isRecorded: boolean): Claim => ({
  node: facts.name,
  strength: isRecorded ? 1 : 2,
  age: ageOf(facts),
});

const keysOf = ({ wireGuardPublicKey, wireGuardNextPublicKey }: NodeFacts): string[] =>
  [wireGuardPublicKey, wireGuardNextPublicKey].filter((key) => key !== undefined);

const keyClaims = (node: SettledNode): (readonly [string, Claim])[] =>
  keysOf(node.facts).map((key) => [key, claimOf(node, node.record.keys.has(key))] as const);

const settleKeys = (node: SettledNode, holders: ReadonlyMap<string, string>): SettledNode => {
  const taken = (key: string | undefined): string | undefined => {
    const holder = key === undefined ? undefined : holders.get(key);
    return holder === node.facts.name ? undefined : holder;
  };
  const { wireGuardPublicKey: key, wireGuardNextPublicKey: next, wireGuardKeyGeneration, ...rest } = node.facts;
  const tell = (field: string, text: string, holder: string, file: string): NodeProblem => ({
    reason: 'WireGuardKeyTaken',
    field: `metadata.annotations[${field}]`,
    message: `the WireGuard public key ${text} is that of node ${holder}, which was listed with it first: delete ${file} on this node and restart its agent; if the key is this node's, delete the Node ${holder}`,
  });
  const [holder, nextHolder] = [taken(key), taken(next)];
  if (holder !== undefined) {
    const problem = tell(annotations.wireGuardPublicKey, key!, holder, '/etc/wireguard/server.priv');
    return { ...node, facts: rest, problems: [...node.problems, problem] };
  }
  if (nextHolder === undefined) return node;
  const problem = tell(annotations.wireGuardNextPublicKey, next!, nextHolder, '/etc/wireguard/server.next.priv');
  const facts: NodeFacts = {
    ...rest,
    ...(key === undefined ? {} : { wireGuardPublicKey: key }),
    ...(wireGuardKeyGeneration === undefined ? {} : { wireGuardKeyGeneration }),
  };
  return { ...node, facts, problems: [...node.problems, problem] };
};

const settleBlocks = (node: SettledNode, losses: readonly PrefixLoss[]): SettledNode => {
  if (losses.length === 0) return node;
  const lost = new Set<Prefix>(losses.map(({ prefix }) => prefix));
  const problems = losses.map(({ prefix, holder, held }): NodeProblem => ({
    reason: 'PodCIDRTaken',
    field: 'spec.podCIDRs',
    message: `${formatPrefix(prefix)} overlaps ${formatPrefix(held)} of node ${holder}, which was listed with it first, and is not routed: delete this Node object and register the node anew, so that it gets other pod CIDRs`,
  }));
  return {
    ...node,
    facts: withBlocks(node.facts, (prefix) => !lost.has(prefix)),
    problems: [...node.problems, ...problems],
    losses,
  };
};

const groupByNode = (losses: readonly PrefixLoss[]): ReadonlyMap<string, readonly PrefixLoss[]> =>
  Map.groupBy(losses, ({ node }) => node);

/**
 * What each node may use. A key, an address, a block or a locator stays with the node that slices or pool status list with it, for as
 * long as that node claims it; of new claims the older Node's counts. A node that is in no Site and that no pool selects is
 * listed nowhere and claims nothing.
 */
export const settleNodes = ({ nodes, sites, pools, slices }: SettlementWorld): readonly SettledNode[] => {
  const index = indexSites(sites);
  const recordOf = readRecords(slices, pools);
  const confine = createConfinement(sites, pools);
  const settled = nodes.map((facts): SettledNode => {
    const site = index.siteOf(facts);
    const record = recordOf(facts.name);
    const isGateway = pools.some((pool) => isSelected(pool, facts));
    if (!site && !isGateway) return { facts, site, isGateway, record, problems: facts.problems, losses: [] };
    const confined = confine(facts, site, record, isGateway);
    const problems = [...facts.problems, ...confined.problems];
    return { facts: confined.facts, site, isGateway, record, problems, losses: [] };
  });
  const isListable = ({ site, isGateway }: SettledNode): boolean => site !== undefined || isGateway;
  const claimants = settled.filter(isListable);
  const keyHolders = holdersOf(claimants.flatMap(keyClaims));
  const settleAddresses = createAddressSettlement(claimants);
  const losses = groupByNode(
    lostPrefixes(
      claimants.flatMap((node) =>
        node.facts.podPrefixes.map((prefix) => ({
          ...claimOf(node, node.record.podCIDRs.has(formatPrefix(prefix))),
          prefix,
        })),
      ),
    ),
  );
  return settleLocators(
    settled.map((node) =>
      isListable(node)
        ? settleBlocks(settleAddresses(settleKeys(node, keyHolders)), losses.get(node.facts.name) ?? [])
        : node,
    ),
  );
};
