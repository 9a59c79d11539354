import type { Codec } from '../codec.ts';
import { checkU32 } from '../endpoints.ts';
import { readMac, writeMac } from '../mac-field.ts';
import { clear, LITTLE, readLocator, writeLocator } from './fields.ts';

/** Networks that the node hosts, and the node itself (bpf/include/l2_maps.h). */

export interface L2Network {
  /** Unicast without an FDB entry is replicated. */
  readonly unknown?: boolean;
  /** Broadcast is, and so are requests for addresses without a Neighbor entry. */
  readonly broadcast?: boolean;
  /** IPv4's groups are, and IPv6's other than those without which it does not work. */
  readonly multicast?: boolean;
  /** Of IP in the frame. */
  readonly mtu: number;
}

export const L2_NETWORK_FLAGS = { unknown: 0x01, broadcast: 0x02, multicast: 0x04 } as const;
/** IPv6 needs it (RFC 8200 5); an IPv6 payload with the outer headers holds no more than the other. */
const [LEAST_MTU, LARGEST_MTU] = [1280, 65_000];

/** Number of a network. */
export const l2NetworkKey: Codec<number> = {
  size: 4,
  write: (value, view, offset) => view.setUint32(offset, checkU32('network', value), LITTLE),
  read: (view, offset) => view.getUint32(offset, LITTLE),
};

/** struct l2_network, 16 bytes. */
export const l2Network: Codec<L2Network> = {
  size: 16,
  write({ unknown, broadcast, multicast, mtu }, view, offset) {
    if (!Number.isInteger(mtu) || mtu < LEAST_MTU || mtu > LARGEST_MTU)
      throw new RangeError(`mtu is ${mtu}: must be an integer from ${LEAST_MTU} to ${LARGEST_MTU}`);
    const bits =
      (unknown ? L2_NETWORK_FLAGS.unknown : 0) |
      (broadcast ? L2_NETWORK_FLAGS.broadcast : 0) |
      (multicast ? L2_NETWORK_FLAGS.multicast : 0);
    view.setUint32(offset, bits, LITTLE);
    view.setUint32(offset + 4, mtu, LITTLE);
    clear(view, offset + 8, 8);
  },
  read(view, offset) {
    const flags = view.getUint32(offset, LITTLE);
    return {
      ...(flags & L2_NETWORK_FLAGS.unknown ? { unknown: true } : {}),
      ...(flags & L2_NETWORK_FLAGS.broadcast ? { broadcast: true } : {}),
      ...(flags & L2_NETWORK_FLAGS.multicast ? { multicast: true } : {}),
      mtu: Math.min(Math.max(view.getUint32(offset + 4, LITTLE), LEAST_MTU), LARGEST_MTU),
    };
  },
};

export interface L2SegmentPair {
  readonly network: number;
  readonly from: number;
  readonly to: number;
}

/** struct l2_segment_key, 12 bytes: frames of one segment may go to another. Equal ones need no entry. */
export const l2SegmentKey: Codec<L2SegmentPair> = {
  size: 12,
  write({ network, from, to }, view, offset) {
    const words = [checkU32('network', network), checkU32('from', from), checkU32('to', to)];
    for (const [index, word] of words.entries()) view.setUint32(offset + index * 4, word, LITTLE);
  },
  read: (view, offset) => ({
    network: view.getUint32(offset, LITTLE),
    from: view.getUint32(offset + 4, LITTLE),
    to: view.getUint32(offset + 8, LITTLE),
  }),
};

/** To where a network replicates. */
export interface L2Flood {
  /** ifindexes of its ports here. */
  readonly ports: readonly number[];
  /** Locators of the other nodes that host it. */
  readonly locators: readonly string[];
}

export const L2_FLOOD_PORTS = 32;
export const L2_FLOOD_NODES = 64;
const [PORTS_AT, LOCATORS_AT, LOCATOR_BYTES] = [16, 16 + 4 * L2_FLOOD_PORTS, 8];

/** struct l2_flood, 656 bytes. */
export const l2Flood: Codec<L2Flood> = {
  size: LOCATORS_AT + L2_FLOOD_NODES * LOCATOR_BYTES,
  write({ ports, locators }, view, offset) {
    if (ports.length > L2_FLOOD_PORTS || locators.length > L2_FLOOD_NODES)
      throw new RangeError(
        `the network has ${ports.length} ports here and ${locators.length} other nodes: at most ${L2_FLOOD_PORTS} and ${L2_FLOOD_NODES} fit`,
      );
    for (const port of ports) checkU32('ifindex', port);
    const scratch = new DataView(new ArrayBuffer(LOCATOR_BYTES));
    for (const locator of locators) writeLocator(locator, scratch, 0); // all checks before the first byte
    clear(view, offset, this.size);
    view.setUint32(offset, ports.length, LITTLE);
    view.setUint32(offset + 4, locators.length, LITTLE);
    for (const [index, port] of ports.entries()) view.setUint32(offset + PORTS_AT + index * 4, port, LITTLE);
    for (const [index, locator] of locators.entries())
      writeLocator(locator, view, offset + LOCATORS_AT + index * LOCATOR_BYTES);
  },
  read(view, offset) {
    const ports = Math.min(view.getUint32(offset, LITTLE), L2_FLOOD_PORTS);
    const nodes = Math.min(view.getUint32(offset + 4, LITTLE), L2_FLOOD_NODES);
    return {
      ports: Array.from({ length: ports }, (_, index) => view.getUint32(offset + PORTS_AT + index * 4, LITTLE)),
      locators: Array.from({ length: nodes }, (_, index) =>
        readLocator(view, offset + LOCATORS_AT + index * LOCATOR_BYTES),
      ),
    };
  },
};

/** The node's own settings. */
export interface L2Config {
  readonly locator: string;
  /** An own Ethernet device: what comes in there, the stack routes. */
  readonly ifindex: number;
  /** Of that device. */
  readonly mac: string;
}

/** struct l2_config, 32 bytes, the one record of `unbounded_l2_config`; its key is that of `unbounded_config`. */
export const l2Config: Codec<L2Config> = {
  size: 32,
  write({ locator, ifindex, mac }, view, offset) {
    const scratch = new DataView(new ArrayBuffer(32));
    writeLocator(locator, scratch, 0);
    scratch.setUint32(8, checkU32('ifindex', ifindex), LITTLE);
    writeMac(mac, scratch, 12);
    for (let index = 0; index < 32; index++) view.setUint8(offset + index, scratch.getUint8(index));
  },
  read: (view, offset) => ({
    locator: readLocator(view, offset),
    ifindex: view.getUint32(offset + 8, LITTLE),
    mac: readMac(view, offset + 12),
  }),
};
