import assert from 'node:assert/strict';
import type { FuzzTarget } from '@unbounded/testing';
import { type Codec, decode, encode } from './codec.ts';
import { endpointV4, endpointV6, lpmKeyV4, lpmKeyV6 } from './endpoints.ts';
import { forwarderKey } from './forwarders.ts';
import { groupKey, nexthopGroup } from './groups.ts';
import {
  l2AddressKey,
  l2Config,
  l2CounterKey,
  l2FdbEntry,
  l2FdbKey,
  l2Flood,
  l2Neighbor,
  l2NeighborKey,
  l2Network,
  l2Port,
  l2SegmentKey,
  l2TotalKey,
} from './l2/index.ts';
import { counter, encapConfig, statsKey } from './stats.ts';

/** Records of pinned maps, as another version may have left them. Input: a byte for the layout, the record (zeros follow). */
const codecs: readonly Codec<unknown>[] = [
  endpointV4,
  endpointV6,
  lpmKeyV4,
  lpmKeyV6,
  groupKey,
  nexthopGroup,
  forwarderKey,
  statsKey,
  counter,
  encapConfig,
  ...[l2Port, l2AddressKey, l2Network, l2SegmentKey, l2FdbKey, l2FdbEntry, l2NeighborKey, l2Neighbor],
  ...[l2Flood, l2Config, l2CounterKey, l2TotalKey],
] as readonly Codec<unknown>[];

/** Whatever the bytes, they are read; what was read is written, and read as the same again. */
const run = (input: Uint8Array): void => {
  const codec = codecs[(input[0] ?? 0) % codecs.length]!;
  const bytes = new Uint8Array(codec.size);
  bytes.set(input.subarray(1, 1 + codec.size));
  const value = decode(codec, bytes);
  assert.deepEqual(decode(codec, encode(codec, value)), value);
};

export const target: FuzzTarget = {
  run,
  seeds: codecs.flatMap(({ size }, index) => [
    Uint8Array.from([index, ...new Uint8Array(size)]),
    Uint8Array.from([index, ...new Uint8Array(size).fill(2)]),
  ]),
  maxBytes: 700,
};
