import assert from 'node:assert/strict';
import type { FuzzTarget } from '@unbounded/testing';
import { decodeNeighborMessage, encodeNeighborMessage, neighborAnnouncement, neighborProbe } from './ndp.codec.ts';

/** What anybody on the LAN sends. */
const run = (input: Uint8Array): void => {
  const message = decodeNeighborMessage(input);
  if (message === undefined) return;
  assert.ok(input.length >= 78);
  assert.ok(message.kind === 'advertisement' || message.source !== '::' || message.linkLayerMac === undefined);
  assert.deepEqual(decodeNeighborMessage(encodeNeighborMessage(message)), message);
};

const [ADDRESS, MAC] = ['2001:db8::7', '02:00:00:00:00:07'] as const;

export const target: FuzzTarget = {
  run,
  seeds: [neighborProbe(ADDRESS, MAC), neighborAnnouncement(ADDRESS, MAC)],
  tokens: [Uint8Array.of(0x86, 0xdd, 0x60), Uint8Array.of(58, 255), Uint8Array.of(2, 1), Uint8Array.of(136, 0)],
  maxBytes: 160,
};
