import assert from 'node:assert/strict';
import type { FuzzTarget } from '@unbounded/testing';
import { arpAnnouncements, arpProbe, decodeArp, encodeArp } from './arp.codec.ts';

/** What anybody on the LAN sends. */
const run = (input: Uint8Array): void => {
  const packet = decodeArp(input);
  if (packet === undefined) return;
  assert.ok(input.length >= 42);
  assert.deepEqual(decodeArp(encodeArp(packet)), packet);
};

const [ADDRESS, MAC] = ['192.0.2.7', '02:00:00:00:00:07'] as const;

export const target: FuzzTarget = {
  run,
  seeds: [arpProbe(ADDRESS, MAC), ...arpAnnouncements(ADDRESS, MAC)],
  tokens: [Uint8Array.of(8, 6, 0, 1, 8, 0, 6, 4), Uint8Array.of(0x81, 0)],
  maxBytes: 80,
};
