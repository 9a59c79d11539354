import type { GatewayPool, Site } from '@unbounded/crds';
import {
  type Address,
  AddressSet,
  formatAddress,
  formatPrefix,
  hostPrefix,
  type Prefix,
  tryParsePrefix,
} from '@unbounded/ip';
import { listed, type SettledNode, tryParseAddress } from '@unbounded/membership';

/** Addresses of the cluster itself, as the API server tells them. */
export interface ClusterAddresses {
  readonly apiServers: readonly Address[];
  /** The range that Services get their addresses from, or what is known of it. */
  readonly services: readonly Prefix[];
}

type UnderlayReason = 'BlockHoldsAPIServer' | 'BlockOverlapsServices' | 'BlockHoldsNodeAddress';

/** A Site's block from which no pod may get an address: routed to pods, it would cut off what it holds. */
export interface UnderlayConflict {
  readonly site: string;
  readonly cidr: string;
  readonly reason: UnderlayReason;
  readonly message: string;
}

const describe: Readonly<Record<UnderlayReason, string>> = {
  BlockHoldsAPIServer: 'holds the address of an API server',
  BlockOverlapsServices: 'overlaps the addresses of Services',
  BlockHoldsNodeAddress: 'holds the address of a node or gateway',
};

const hostOf = (text: string): readonly Prefix[] => {
  const address = tryParseAddress(text);
  return address ? [hostPrefix(address)] : [];
};

const externalIPsOf = ({ status }: GatewayPool): readonly string[] =>
  (status?.nodes ?? []).flatMap(({ externalIPs = [] }) => externalIPs);

/** Changes only when something does that allocation depends on at once: which nodes are gateways, and their external addresses. */
export const poolFingerprint = (pool: GatewayPool): string =>
  `${pool.metadata.generation} ${externalIPsOf(pool).toSorted().join()}`;

/** The internal addresses that nodes may use, and the external ones of gateways. */
const nodeAddresses = (nodes: readonly SettledNode[], pools: readonly GatewayPool[]): readonly Prefix[] => [
  ...nodes.filter(({ site }) => site !== undefined).flatMap(({ facts }) => facts.internalAddresses.map(hostPrefix)),
  ...pools.flatMap(externalIPsOf).flatMap(hostOf),
];

/** Blocks of Sites that hold addresses of the underlay. Nothing is allocated from them. */
export const planUnderlayConflicts = (
  sites: readonly Site[],
  nodes: readonly SettledNode[],
  pools: readonly GatewayPool[],
  { apiServers, services }: ClusterAddresses,
): readonly UnderlayConflict[] => {
  const kinds = (
    [
      ['BlockHoldsAPIServer', apiServers.map(hostPrefix)],
      ['BlockOverlapsServices', services],
      ['BlockHoldsNodeAddress', nodeAddresses(nodes, pools)],
    ] as const
  ).map(([reason, prefixes]) => ({ reason, prefixes, all: AddressSet.of(prefixes) }));
  const conflictsOf = (site: string, block: Prefix): UnderlayConflict[] =>
    kinds
      .filter(({ all }) => all.overlaps(block))
      .map(({ reason, prefixes }) => {
        const one = AddressSet.of([block]);
        const held = prefixes.filter((prefix) => one.overlaps(prefix));
        const texts = held.map((prefix) =>
          reason === 'BlockOverlapsServices'
            ? formatPrefix(prefix)
            : formatAddress({ family: prefix.family, value: prefix.address }),
        );
        const cidr = formatPrefix(block);
        const message = `${cidr} ${describe[reason]} (${listed(texts)}): no pod gets an address of it; use a block of addresses that nothing else has`;
        return { site, cidr, reason, message };
      });
  return sites.flatMap(({ metadata, spec }) =>
    spec.podCidrAssignments
      .flatMap(({ cidrBlocks }) => cidrBlocks.flatMap((text) => tryParsePrefix(text) ?? []))
      .flatMap((block) => conflictsOf(metadata.name, block)),
  );
};
