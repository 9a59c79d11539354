import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import type { FuzzTarget } from '@unbounded/testing';
import { decodeProxyHeader, MAX_PROXY_HEADER_BYTES } from './proxy-protocol.codec.ts';

/** The first bytes of a connection through a balancer, or of a stranger that says it is one. */
const run = (input: Uint8Array): void => {
  const header = decodeProxyHeader(input);
  if (header.kind === 'partial') {
    assert.ok(input.length < MAX_PROXY_HEADER_BYTES, 'a header of the greatest length is waited for');
    return;
  }
  if (header.kind === 'malformed') return;
  assert.ok(header.bytes <= input.length && header.bytes <= MAX_PROXY_HEADER_BYTES);
  assert.ok(header.source === undefined || isIP(header.source) > 0, header.source);
  // However the header comes in pieces, it is the same.
  for (const cut of [header.bytes - 1, header.bytes >> 1])
    assert.equal(decodeProxyHeader(input.subarray(0, cut)).kind, 'partial');
  assert.deepEqual(decodeProxyHeader(input.subarray(0, header.bytes)), header);
};

const signature = Uint8Array.of(0x0d, 0x0a, 0x0d, 0x0a, 0, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a);
const seed = (command: number, family: number, rest: number): Uint8Array =>
  Uint8Array.from([...signature, 0x20 | command, family, 0, rest, ...new Uint8Array(rest)]);

export const target: FuzzTarget = {
  run,
  seeds: [seed(1, 0x11, 4), seed(1, 0x21, 12), seed(0, 0, 0), seed(1, 0x11, 12), seed(1, 0x21, 36), seed(1, 0x11, 20)],
  tokens: [signature],
  maxBytes: 2100,
};
