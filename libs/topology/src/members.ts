import {
  FIRST_GATEWAY_WIREGUARD_PORT,
  type Gateway,
  type GatewayPool,
  LAST_GATEWAY_WIREGUARD_PORT,
  type SiteNode,
  type SiteNodeSlice,
} from '@unbounded/crds';
import type { ObjectReader } from './object-reader.ts';
import type { Member, Problem } from './world.ts';

/** Who is in the network. While objects change a node may stand in two of them: the first by name counts, pools before slices. */

const byName = <T extends { readonly name: string }>(members: readonly T[]): T[] =>
  members.toSorted((a, b) => (a.name < b.name ? -1 : 1));

const memberOf = (node: SiteNode | Gateway, site: string, read: ObjectReader): Member => ({
  name: node.name,
  site,
  publicKey: node.wireGuardPublicKey || undefined,
  keyGeneration: node.wireGuardKeyGeneration ?? 0,
  nextPublicKey: node.wireGuardNextPublicKey || undefined,
  internalIps: read.addresses(`node ${node.name} internalIPs`, node.internalIPs),
  externalIps: 'externalIPs' in node ? read.addresses(`node ${node.name} externalIPs`, node.externalIPs) : [],
  podCidrs: read.prefixes(`node ${node.name} podCIDRs`, node.podCIDRs),
  protocols: node.tunnelProtocols,
  pool: undefined,
  gatewayPort: undefined,
});

/** Keeps a value with the first member by name that has it; others go without, and that is told. */
const giveOnce = <T extends string | number>(
  members: readonly Member[],
  valueOf: (member: Member) => T | undefined,
  without: (member: Member, value: T, first: string) => Member,
): Member[] => {
  const owners = new Map<T, string>();
  return byName(members).map((member) => {
    const value = valueOf(member);
    if (value === undefined) return member;
    const first = owners.get(value);
    if (first !== undefined) return without(member, value, first);
    owners.set(value, member.name);
    return member;
  });
};

const uniqueKeys = (members: readonly Member[], problems: Problem[]): Member[] =>
  giveOnce(
    members,
    ({ publicKey }) => publicKey,
    (member, key, first) => {
      problems.push({
        reason: 'DuplicateKey',
        message: `node ${member.name} has the WireGuard public key ${key} of node ${first}, and gets no links: delete /etc/wireguard/server.priv on one of them and restart its agent`,
      });
      return { ...member, publicKey: undefined };
    },
  );

/** After {@link uniqueKeys}: a next key that is any node's key already, or another's next one, is not used. */
const uniqueNextKeys = (members: readonly Member[], problems: Problem[]): Member[] => {
  const owners = new Map(
    members.flatMap(({ publicKey, name }) => (publicKey === undefined ? [] : [[publicKey, name]])),
  );
  const drop = (member: Member, key: string, first: string): Member => {
    problems.push({
      reason: 'DuplicateKey',
      message: `node ${member.name} announces the next WireGuard public key ${key}, which node ${first} has: the exchange of its key waits; delete /etc/wireguard/server.next.priv there and restart its agent`,
    });
    return { ...member, nextPublicKey: undefined };
  };
  const own = members.map((member) => {
    const key = member.nextPublicKey;
    const first = key === undefined ? undefined : owners.get(key);
    return key === undefined || first === undefined ? member : drop(member, key, first);
  });
  return giveOnce(own, ({ nextPublicKey }) => nextPublicKey, drop);
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

const gatewaysOf = (pools: readonly GatewayPool[], read: ObjectReader): Member[] => {
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

const workersOf = (slices: readonly SiteNodeSlice[], gateways: ReadonlySet<string>, read: ObjectReader): Member[] => {
  const seen = new Set(gateways);
  return slices.flatMap((slice) =>
    (slice.nodes ?? []).flatMap((node) => {
      if (seen.has(node.name)) return [];
      seen.add(node.name);
      return [memberOf(node, slice.siteName, read)];
    }),
  );
};

/** Gateways and workers, each by name. The objects must be in the order of their names. */
export const parseMembers = (
  pools: readonly GatewayPool[],
  slices: readonly SiteNodeSlice[],
  read: ObjectReader,
): { gateways: Member[]; workers: Member[] } => {
  const gateways = gatewaysOf(pools, read);
  const workers = workersOf(slices, new Set(gateways.map(({ name }) => name)), read);
  const { problems } = read;
  const members = uniquePorts(uniqueNextKeys(uniqueKeys([...gateways, ...workers], problems), problems), problems);
  return {
    gateways: members.filter(({ pool }) => pool !== undefined),
    workers: members.filter(({ pool }) => pool === undefined),
  };
};
