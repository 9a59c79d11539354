import { annotations, type Network } from '@unbounded/crds';
import type { Named } from './cluster-snapshot.ts';
import { networkMtu, SRV6_OVERHEAD_BYTES } from './mtu.ts';
import type { NetworkCondition } from './network-condition.ts';

/** Bytes of an IP packet (RFC 8200 5): of Networks of IPv4 alone too, so that one can get a prefix of IPv6. */
const LEAST_MTU = 1280;
/** Of an Ethernet frame as Network.status.mtu has it. */
const MOST_MTU = 9000;
const TYPE = 'MtuKnown';
const SHOWN_NODES = 3;

export interface StatedMtu {
  readonly mtu?: number;
  readonly condition: NetworkCondition;
}

/** Bytes that a node's underlay leaves for a tunnel, as its agent announces; undefined: it has not, or no number. */
const tunnelMtu = (node: Named | undefined): number | undefined => {
  const text = node?.metadata.annotations?.[annotations.tunnelMtu] ?? '';
  return /^[0-9]{1,5}$/.test(text) ? Number(text) : undefined;
};

const listed = (names: readonly string[]): string =>
  names.length <= SHOWN_NODES
    ? names.join(', ')
    : `${names.slice(0, SHOWN_NODES).join(', ')} and ${names.length - SHOWN_NODES} more`;

type Announced = readonly [node: string, bytes: number];

/** Where a number comes from. */
const explain = (mtu: number, asked: number | undefined, narrowest: Announced | undefined) => {
  if (mtu === asked) return `${mtu}, of spec.mtu`;
  if (mtu === MOST_MTU || !narrowest) return `${mtu}, the most that a Network has`;
  return `${mtu}: ${narrowest[1]} bytes of node ${narrowest[0]} (annotation ${annotations.tunnelMtu}) less ${SRV6_OVERHEAD_BYTES} for SRv6`;
};

const unknown = (hosts: readonly string[]): StatedMtu => ({
  condition:
    hosts.length === 0
      ? { type: TYPE, status: 'Unknown', reason: 'NoEndpoints', message: 'the first pod that attaches decides it' }
      : {
          ...{ type: TYPE, status: 'False', reason: 'NotAnnounced' },
          message: `nodes ${listed(hosts)}: without the annotation ${annotations.tunnelMtu}, which their agents write; see their logs, or set spec.mtu`,
        },
});

const byBytes = (a: Announced, b: Announced): number => a[1] - b[1] || (a[0] < b[0] ? -1 : 1);
const leavesEnough = ([, bytes]: Announced): boolean => bytes >= LEAST_MTU + SRV6_OVERHEAD_BYTES;

/** @param isShared whether other nodes leave enough, whose pods go on */
const tooSmall = ([node, bytes]: Announced, isShared: boolean): NetworkCondition => {
  const leaves = `annotation ${annotations.tunnelMtu} of node ${node} "${bytes}": leaves ${bytes - SRV6_OVERHEAD_BYTES} bytes, and a network needs ${LEAST_MTU}`;
  const remedy = `raise the MTU of its underlay until it leaves ${LEAST_MTU + SRV6_OVERHEAD_BYTES} for a tunnel`;
  const effect = isShared ? '; it does not count, and longer packets from and to its pods are lost' : '';
  return { type: TYPE, status: 'False', reason: 'UnderlayTooSmall', message: `${leaves}: ${remedy}${effect}` };
};

/**
 * The MTU of a Network: what it asks for, or less where the underlay of a node that hosts it leaves less. A node that leaves too little for
 * any Network does not count beside others: one annotation takes a Network from nobody else.
 */
export const stateMtu = (network: Network, hosts: readonly string[], nodes: ReadonlyMap<string, Named>): StatedMtu => {
  const stated = hosts.map((node) => [node, tunnelMtu(nodes.get(node))] as const);
  const known = stated
    .flatMap(([node, bytes]): Announced[] => (bytes === undefined ? [] : [[node, bytes]]))
    .toSorted(byBytes);
  const wide = known.filter(leavesEnough);
  const [narrowest] = known;
  if (narrowest && wide.length === 0) return { condition: tooSmall(narrowest, false) };
  const left = networkMtu(
    wide.map(([, bytes]) => bytes),
    network.spec.mtu,
  );
  if (left === undefined) return unknown(hosts);
  const mtu = Math.min(left, MOST_MTU);
  if (narrowest && !leavesEnough(narrowest)) return { mtu, condition: tooSmall(narrowest, true) };
  const silent = stated.flatMap(([node, bytes]) => (bytes === undefined ? [node] : []));
  const rest = silent.length === 0 ? '' : `; not known of ${listed(silent)}`;
  const message = `${explain(mtu, network.spec.mtu, narrowest)}${rest}`;
  return { mtu, condition: { type: TYPE, status: 'True', reason: 'Known', message } };
};
