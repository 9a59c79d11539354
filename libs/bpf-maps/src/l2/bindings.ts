import type { Codec } from '../codec.ts';
import { checkU32 } from '../endpoints.ts';
import { readMac, writeMac } from '../mac-field.ts';
import { clear, LITTLE, readAddress, readLocator, writeAddress, writeLocator } from './fields.ts';
import { type L2Rights, readRights, rightsBits } from './rights.ts';

/** Where MACs are, and which MAC an address has (bpf/include/l2_maps.h). */

export interface L2Mac {
  readonly network: number;
  readonly mac: string;
}

/** struct l2_fdb_key, 12 bytes. */
export const l2FdbKey: Codec<L2Mac> = {
  size: 12,
  write({ network, mac }, view, offset) {
    checkU32('network', network);
    writeMac(mac, view, offset + 4);
    view.setUint32(offset, network, LITTLE);
    view.setUint16(offset + 10, 0);
  },
  read: (view, offset) => ({ network: view.getUint32(offset, LITTLE), mac: readMac(view, offset + 4) }),
};

/** An endpoint at a port of this node, or at another node. */
export type L2FdbEntry = (
  | { readonly ifindex: number; readonly locator?: never }
  | { readonly locator: string; readonly ifindex?: never }
) &
  L2Rights & {
    readonly segment: number;
    /** Which of two claims is newer (RFC 7432 7.7); the programs do not read it. */
    readonly sequence: bigint;
  };

/** struct l2_fdb_entry, 32 bytes. */
export const l2FdbEntry: Codec<L2FdbEntry> = {
  size: 32,
  write({ ifindex, locator, segment, sequence, ...rights }, view, offset) {
    if (ifindex === 0) throw new RangeError('ifindex is 0: a local endpoint has a port');
    const port = checkU32('ifindex', ifindex ?? 0);
    checkU32('segment', segment);
    writeLocator(locator ?? '::', view, offset + 8);
    view.setUint32(offset, port, LITTLE);
    view.setUint32(offset + 4, segment, LITTLE);
    view.setBigUint64(offset + 16, sequence, LITTLE);
    view.setUint32(offset + 24, rightsBits(rights), LITTLE);
    clear(view, offset + 28, 4);
  },
  read(view, offset) {
    const ifindex = view.getUint32(offset, LITTLE);
    return {
      ...(ifindex === 0 ? { locator: readLocator(view, offset + 8) } : { ifindex }),
      segment: view.getUint32(offset + 4, LITTLE),
      sequence: view.getBigUint64(offset + 16, LITTLE),
      ...readRights(view.getUint32(offset + 24, LITTLE)),
    };
  },
};

export interface L2NeighborAddress {
  readonly network: number;
  readonly address: string;
}

/** struct l2_neighbor_key, 20 bytes. */
export const l2NeighborKey: Codec<L2NeighborAddress> = {
  size: 20,
  write({ network, address }, view, offset) {
    checkU32('network', network);
    writeAddress(address, view, offset + 4);
    view.setUint32(offset, network, LITTLE);
  },
  read: (view, offset) => ({ network: view.getUint32(offset, LITTLE), address: readAddress(view, offset + 4) }),
};

export interface L2Neighbor {
  readonly mac: string;
  /** Is a router, as neighbor advertisements say. */
  readonly router?: boolean;
}

export const L2_NEIGHBOR_FLAGS = { router: 0x01 } as const;

/** struct l2_neighbor, 12 bytes. */
export const l2Neighbor: Codec<L2Neighbor> = {
  size: 12,
  write({ mac, router }, view, offset) {
    writeMac(mac, view, offset);
    view.setUint16(offset + 6, 0);
    view.setUint32(offset + 8, router ? L2_NEIGHBOR_FLAGS.router : 0, LITTLE);
  },
  read(view, offset) {
    const flags = view.getUint32(offset + 8, LITTLE);
    return { mac: readMac(view, offset), ...(flags & L2_NEIGHBOR_FLAGS.router ? { router: true } : {}) };
  },
};
