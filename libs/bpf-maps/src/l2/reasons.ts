import type { Codec } from '../codec.ts';
import { checkU32 } from '../endpoints.ts';
import { LITTLE } from './fields.ts';

/** Reasons in the order of `enum l2_reason` (bpf/include/l2_reasons.h). */
export const L2_REASONS = [
  'forwarded',
  'encapsulated',
  'replicated',
  'received',
  'answered_arp',
  'answered_nd',
  'answered_too_big',
  'drop_no_port',
  'drop_no_network',
  'drop_malformed',
  'drop_forged_mac',
  'drop_forged_arp',
  'drop_forged_nd',
  'drop_forged_address',
  'drop_tagged',
  'drop_bridge_protocol',
  'drop_llc',
  'drop_dhcp_reply',
  'drop_router',
  'drop_nd_extensions',
  'drop_superpacket',
  'drop_too_big',
  'drop_own_probe',
  'drop_same_port',
  'drop_segment',
  'drop_unknown',
  'drop_broadcast',
  'drop_multicast',
  'drop_rate',
  'drop_encap',
  'drop_not_sid',
  'drop_unknown_source',
  'drop_forged_node',
  'drop_not_local',
] as const;
export type L2Reason = (typeof L2_REASONS)[number];

const indexOf = (reason: L2Reason): number => {
  const index = L2_REASONS.indexOf(reason);
  if (index < 0) throw new RangeError(`"${reason}" is no reason: there are ${L2_REASONS.join(', ')}`);
  return index;
};
const reasonOf = (index: number): L2Reason => L2_REASONS[Math.min(index, L2_REASONS.length - 1)]!;

export interface L2CounterKey {
  readonly ifindex: number;
  readonly reason: L2Reason;
}

/** struct l2_counter_key, 8 bytes: a counter of a device, in `unbounded_l2_counters`. */
export const l2CounterKey: Codec<L2CounterKey> = {
  size: 8,
  write({ ifindex, reason }, view, offset) {
    const [device, index] = [checkU32('ifindex', ifindex), indexOf(reason)];
    view.setUint32(offset, device, LITTLE);
    view.setUint32(offset + 4, index, LITTLE);
  },
  read: (view, offset) => ({
    ifindex: view.getUint32(offset, LITTLE),
    reason: reasonOf(view.getUint32(offset + 4, LITTLE)),
  }),
};

/** Index in `unbounded_l2_totals`, which counts for devices without an entry. */
export const l2TotalKey: Codec<L2Reason> = {
  size: 4,
  write: (value, view, offset) => view.setUint32(offset, indexOf(value), LITTLE),
  read: (view, offset) => reasonOf(view.getUint32(offset, LITTLE)),
};
