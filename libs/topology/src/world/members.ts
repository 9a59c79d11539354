import {
  FIRST_GATEWAY_WIREGUARD_PORT,
  type Gateway,
  type GatewayPool,
  LAST_GATEWAY_WIREGUARD_PORT,
  type SiteNode,
  type SiteNodeSlice,
} from '@unbounded/crds';
import { formatPrefix, hostPrefix, parseAddress, type Prefix } from '@unbounded/ip';
import { type BlockClaim, settleBlocks, uniqueKeys } from './claims.ts';
import { readLocator } from './locators.ts';
import { type Confinement, isSpecial } from './confinement.ts';
import type { Holders } from './holdings.ts';
import type { ObjectReader } from './object-reader.ts';
import type { Member, SiteModel } from './world.ts';
import type { Problem } from './problem.ts';

/** Who is in the network. While objects change a node may stand in two of them: the first by name counts, pools before slices. */

const byName = <T extends { readonly name: string }>(members: readonly T[]): T[] =>
  members.toSorted((a, b) => (a.name < b.name ? -1 : 1));

/** 32 bytes in canonical base64 (RFC 4648 4): the low two bits of the last digit are zero. */
const WIREGUARD_KEY = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;
/** All zero: a point of low order (RFC 7748 6.1), and what an empty file decodes to. */
const ZERO_KEY = `${'A'.repeat(43)}=`;

const LONGEST_SHOWN = 50;

const readKey = (where: string, key: string | undefined, { problems }: ObjectReader): string | undefined => {
  if (!key) return undefined;
  if (WIREGUARD_KEY.test(key) && key !== ZERO_KEY) return key;
  problems.push({
    reason: 'InvalidKey',
    message: `${where}: "${key.slice(0, LONGEST_SHOWN)}" is not a WireGuard public key (44 characters of base64) and is not used: restart the node's agent, which writes the annotation anew`,
  });
  return undefined;
};

/** What is read of nodes, and where it may lie. */
interface NodeReader {
  readonly sites: ReadonlyMap<string, SiteModel>;
  readonly read: ObjectReader;
  readonly confinement: Confinement;
}

const podCidrsOf = (node: SiteNode | Gateway, site: string, { read, confinement }: NodeReader): Prefix[] =>
  read.prefixes(`node ${node.name} podCIDRs`, node.podCIDRs).filter((block) => {
    if (confinement.hasBlock({ name: node.name, site }, block)) return true;
    read.problems.push(outsideSite(node.name, site, block));
    return false;
  });

/** Of a node whose block cannot be routed to it. */
export const outsideSite = (node: string, site: string, block: Prefix): Problem => ({
  reason: 'PodCIDRsOutsideSite',
  message: `pod CIDR ${formatPrefix(block)} of node ${node} is not inside the cidrBlocks of its Site ${site || '(none)'} and is not routed: correct the nodeCidrs or cidrBlocks of the Sites, or delete and re-create the Node, which then gets a block of its Site`,
});

const memberOf = (node: SiteNode | Gateway, site: string, reader: NodeReader): Member => {
  const { read, confinement, sites } = reader;
  const where = `node ${node.name}`;
  const publicKey = readKey(`${where} wireGuardPublicKey`, node.wireGuardPublicKey, read);
  const nextKey = readKey(`${where} wireGuardNextPublicKey`, node.wireGuardNextPublicKey, read);
  const locator = readLocator(node, sites.get(site), read.problems);
  const externalIps = 'externalIPs' in node ? read.addresses(`${where} externalIPs`, node.externalIPs) : [];
  return {
    name: node.name,
    site,
    publicKey,
    keyGeneration: node.wireGuardKeyGeneration ?? 0,
    nextPublicKey: nextKey === publicKey ? undefined : nextKey,
    internalIps: read
      .addresses(`${where} internalIPs`, node.internalIPs)
      .filter((address) => confinement.hasAddress({ name: node.name, site }, address)),
    externalIps: externalIps.filter((address) => !isSpecial(address)),
    podCidrs: podCidrsOf(node, site, reader),
    ...(locator === undefined ? {} : { locator }),
    nodeAddresses: [],
    protocols: node.tunnelProtocols,
    features: ('features' in node && node.features) || [],
    pool: undefined,
    gatewayPort: undefined,
  };
};

/** Keeps a port with the first gateway by name that has it; the controller gives ports, nodes do not claim them. */
const giveOnce = (
  members: readonly Member[],
  valueOf: (member: Member) => number | undefined,
  without: (member: Member, value: number, first: string) => Member,
): Member[] => {
  const owners = new Map<number, string>();
  return byName(members).map((member) => {
    const value = valueOf(member);
    if (value === undefined) return member;
    const first = owners.get(value);
    if (first !== undefined) return without(member, value, first);
    owners.set(value, member.name);
    return member;
  });
};

const bySettled = (claims: readonly BlockClaim[]): Map<string, Prefix[]> => {
  const found = new Map<string, Prefix[]>();
  for (const { member, prefix } of claims) found.set(member.name, [...(found.get(member.name) ?? []), prefix]);
  return found;
};

/** Who held a value keeps it; then blocks of the size that the Site gives out; then gateways. */
const rankOf = (isHeld: boolean, isUsual: boolean, { pool }: Member): number =>
  isHeld ? 0 : 1 + (isUsual ? 0 : 2) + (pool === undefined ? 1 : 0);

const uniqueBlocks = (members: readonly Member[], { sites, holders }: MemberContext, problems: Problem[]): Member[] => {
  const claims = members.flatMap((member) =>
    member.podCidrs.map((prefix): BlockClaim => {
      const isUsual = sites.get(member.site)?.blockLengths.has(prefix.length) ?? false;
      return { member, prefix, rank: rankOf(holders.holdsBlock(member.name, formatPrefix(prefix)), isUsual, member) };
    }),
  );
  const settled = bySettled(settleBlocks(claims, problems));
  return members.map((member) => ({ ...member, podCidrs: settled.get(member.name) ?? [] }));
};

const locatorConflict = ({ member, prefix }: BlockClaim, other: BlockClaim, isOthers: boolean): Problem => ({
  reason: 'LocatorOverlap',
  message: `l2Locator ${formatPrefix(prefix)} of node ${member.name} is that of node ${other.member.name}, ${isOthers ? 'which keeps it' : 'and it cannot be decided whose it is'}: frames of stretched L2 do not reach node ${member.name}; delete and re-create the Node that got its locator last`,
});

const uniqueLocators = (members: readonly Member[], { holders }: MemberContext, problems: Problem[]): Member[] => {
  const claims = members.flatMap((member): BlockClaim[] => {
    const { name, locator } = member;
    if (!locator) return [];
    return [{ member, prefix: locator, rank: rankOf(holders.holdsBlock(name, formatPrefix(locator)), true, member) }];
  });
  const settled = bySettled(settleBlocks(claims, problems, locatorConflict));
  return members.map((member) => {
    if (!member.locator || settled.has(member.name)) return member;
    const { locator: _, ...rest } = member;
    return rest;
  });
};

/** Which of its addresses a node itself may be reached at through the overlay. */
const uniqueAddresses = (members: readonly Member[], { holders }: MemberContext, problems: Problem[]): Member[] => {
  const claims = members.flatMap((member) =>
    member.internalIps.map((text): BlockClaim => ({
      member,
      prefix: hostPrefix(parseAddress(text)),
      rank: rankOf(holders.holdsAddress(member.name, text), true, member),
    })),
  );
  const settled = bySettled(settleBlocks(claims, problems));
  return members.map((member) => {
    const own = new Set((settled.get(member.name) ?? []).map(formatPrefix));
    const isOwn = (text: string): boolean => own.has(formatPrefix(hostPrefix(parseAddress(text))));
    return { ...member, nodeAddresses: member.internalIps.filter(isOwn) };
  });
};

/** The ports above belong to links with keys of other generations. */
const isGatewayPort = (port: number | undefined): boolean =>
  port !== undefined && port >= FIRST_GATEWAY_WIREGUARD_PORT && port <= LAST_GATEWAY_WIREGUARD_PORT;

const uniquePorts = (members: readonly Member[], problems: Problem[]): Member[] =>
  giveOnce(
    members.map((member) => (isGatewayPort(member.gatewayPort) ? member : { ...member, gatewayPort: undefined })),
    ({ gatewayPort }) => gatewayPort,
    (member, port, first) => {
      problems.push({
        reason: 'DuplicateGatewayPort',
        message: `gateway ${member.name} has the gatewayWireguardPort ${port} of gateway ${first}, and waits for one of its own`,
      });
      return { ...member, gatewayPort: undefined };
    },
  );

const gatewaysOf = (pools: readonly GatewayPool[], read: NodeReader): Member[] => {
  const seen = new Set<string>();
  return pools.flatMap(({ metadata, status }) =>
    (status?.nodes ?? []).flatMap((gateway) => {
      if (seen.has(gateway.name)) return [];
      seen.add(gateway.name);
      const port = gateway.gatewayWireguardPort;
      return [{ ...memberOf(gateway, gateway.siteName ?? '', read), pool: metadata.name, gatewayPort: port }];
    }),
  );
};

const workersOf = (slices: readonly SiteNodeSlice[], gateways: ReadonlySet<string>, read: NodeReader): Member[] => {
  const seen = new Set(gateways);
  return slices.flatMap((slice) =>
    (slice.nodes ?? []).flatMap((node) => {
      if (seen.has(node.name)) return [];
      seen.add(node.name);
      return [memberOf(node, slice.siteName, read)];
    }),
  );
};

/** What members are read with besides the objects that list them. */
export interface MemberContext {
  readonly sites: ReadonlyMap<string, SiteModel>;
  readonly confinement: Confinement;
  readonly holders: Holders;
}

/** Gateways and workers, each by name. The objects must be in the order of their names. */
export const parseMembers = (
  pools: readonly GatewayPool[],
  slices: readonly SiteNodeSlice[],
  context: MemberContext,
  read: ObjectReader,
): { gateways: Member[]; workers: Member[] } => {
  const reader = { read, confinement: context.confinement, sites: context.sites };
  const gateways = gatewaysOf(pools, reader);
  const workers = workersOf(slices, new Set(gateways.map(({ name }) => name)), reader);
  const { problems } = read;
  const keyed = uniqueKeys(byName([...gateways, ...workers]), context.holders, problems);
  const addressed = uniqueAddresses(uniqueBlocks(keyed, context, problems), context, problems);
  const members = uniquePorts(uniqueLocators(addressed, context, problems), problems);
  return {
    gateways: members.filter(({ pool }) => pool !== undefined),
    workers: members.filter(({ pool }) => pool === undefined),
  };
};
