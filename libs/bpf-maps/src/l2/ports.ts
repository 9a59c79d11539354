import type { Codec } from '../codec.ts';
import { checkU32 } from '../endpoints.ts';
import { readMac, writeMac } from '../mac-field.ts';
import { clear, LITTLE, readAddress, writeAddress } from './fields.ts';
import { type L2Rights, readRights, rightsBits } from './rights.ts';

/** Ports: the host sides of pods' veths (bpf/include/l2_maps.h). */

export interface L2Port extends L2Rights {
  readonly network: number;
  readonly segment: number;
  /** Copies a second that may be made of its frames for other ports and nodes, and how many at once. */
  readonly rate: number;
  readonly burst: number;
  /** The only source that it may use. */
  readonly mac: string;
}

/** ifindex of a port. */
export const l2PortKey: Codec<number> = {
  size: 4,
  write: (value, view, offset) => view.setUint32(offset, checkU32('ifindex', value), LITTLE),
  read: (view, offset) => view.getUint32(offset, LITTLE),
};

/** struct l2_port, 40 bytes. */
export const l2Port: Codec<L2Port> = {
  size: 40,
  write(value, view, offset) {
    const words = [
      checkU32('network', value.network),
      checkU32('segment', value.segment),
      rightsBits(value),
      checkU32('rate', value.rate),
      checkU32('burst', value.burst),
    ];
    writeMac(value.mac, view, offset + 20);
    for (const [index, word] of words.entries()) view.setUint32(offset + index * 4, word, LITTLE);
    clear(view, offset + 26, 14);
  },
  read(view, offset) {
    return {
      network: view.getUint32(offset, LITTLE),
      segment: view.getUint32(offset + 4, LITTLE),
      ...readRights(view.getUint32(offset + 8, LITTLE)),
      rate: view.getUint32(offset + 12, LITTLE),
      burst: view.getUint32(offset + 16, LITTLE),
      mac: readMac(view, offset + 20),
    };
  },
};

export interface L2Address {
  readonly ifindex: number;
  readonly address: string;
}

/** struct l2_address_key, 20 bytes: an address that the port may use. */
export const l2AddressKey: Codec<L2Address> = {
  size: 20,
  write({ ifindex, address }, view, offset) {
    checkU32('ifindex', ifindex);
    writeAddress(address, view, offset + 4);
    view.setUint32(offset, ifindex, LITTLE);
  },
  read: (view, offset) => ({ ifindex: view.getUint32(offset, LITTLE), address: readAddress(view, offset + 4) }),
};

/** The value of an entry that is there or not; its bits are reserved. */
export const l2Present: Codec<true> = {
  size: 4,
  write: (_value, view, offset) => view.setUint32(offset, 0, LITTLE),
  read: () => true,
};

/** struct l2_buckets, 32 bytes: user space writes full buckets with the port, and then nothing more. */
export const l2Buckets: Codec<'full'> = {
  size: 32,
  write: (_value, view, offset) => clear(view, offset, 32),
  read: () => 'full',
};
