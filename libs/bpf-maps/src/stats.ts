import type { Codec } from './codec.ts';
import { checkU32 } from './endpoints.ts';
import { NO_MAC, readMac, writeMac } from './mac-field.ts';

/** Counters (bpf/include/stats.h) and the one record of settings. */

/** Reasons in the order of `enum stat`. */
export const STATS = [
  'redirected_geneve',
  'redirected_vxlan',
  'redirected_ipip',
  'redirected_wireguard',
  'drop_no_endpoint',
  'drop_no_member',
  'drop_malformed',
  'drop_not_ip',
  'drop_key',
  'received',
  'drop_forged_source',
  'drop_unknown_source',
] as const;
export type Stat = (typeof STATS)[number];

/** Index of a counter, by its reason. */
export const statsKey: Codec<Stat> = {
  size: 4,
  write(value, view, offset) {
    const index = STATS.indexOf(value);
    if (index < 0) throw new RangeError(`"${value}" is no counter: there are ${STATS.join(', ')}`);
    view.setUint32(offset, index, true);
  },
  read: (view, offset) => STATS[Math.min(view.getUint32(offset, true), STATS.length - 1)]!,
};

/** u64. */
export const counter: Codec<bigint> = {
  size: 8,
  write: (value, view, offset) => view.setBigUint64(offset, value, true),
  read: (view, offset) => view.getBigUint64(offset, true),
};

export interface EncapConfig {
  /** Source of inner Ethernet headers; absent: what the anchor wrote stays. */
  readonly ownMac?: string;
  /** Take packets from tunnels whatever their inner source. */
  readonly anySource: boolean;
}

const ANY_SOURCE = 0x01;

/** The only key of `unbounded_config`. */
export const configKey: Codec<0> = {
  size: 4,
  write: (value, view, offset) => view.setUint32(offset, checkU32('key', value), true),
  read: () => 0,
};

/** struct encap_config, 12 bytes. */
export const encapConfig: Codec<EncapConfig> = {
  size: 12,
  write({ ownMac, anySource }, view, offset) {
    writeMac(ownMac ?? NO_MAC, view, offset);
    view.setUint16(offset + 6, 0, true);
    view.setUint32(offset + 8, anySource ? ANY_SOURCE : 0, true);
  },
  read(view, offset) {
    const ownMac = readMac(view, offset);
    return {
      anySource: (view.getUint32(offset + 8, true) & ANY_SOURCE) !== 0,
      ...(ownMac === NO_MAC ? {} : { ownMac }),
    };
  },
};
