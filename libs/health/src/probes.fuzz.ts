import assert from 'node:assert/strict';
import type { FuzzTarget } from '@unbounded/testing';
import { createEchoDecoder, createEchoEncoder, EchoError, TOKEN_BYTES } from './echo.codec.ts';
import { decodePathProbe, encodePathProbe, PAIR_NAME_BYTES, pairNameOf, splitPathProbes } from './path-probe.codec.ts';
import { decodeProbe, encodeProbe, MAC_BYTES, PROBE_BYTES, ProbeError } from './probe.codec.ts';

/**
 * What comes to the probes' port. The authentication code is left out (it is all zeros, and the input's own is replaced by
 * it), so that the search reaches what a peer with a key may send. Input: a byte of which the lowest bits say whether it is a
 * probe, one of a path or an echo, then the packet.
 */
const authenticate = (): Uint8Array => new Uint8Array(MAC_BYTES);

const refused = <T>(read: () => T, by: typeof ProbeError | typeof EchoError = ProbeError): T | undefined => {
  try {
    return read();
  } catch (error) {
    if (error instanceof by) return undefined;
    throw error;
  }
};

const runProbe = (packet: Uint8Array): void => {
  const probe = refused(() => decodeProbe(packet, authenticate));
  if (!probe) return;
  const written = encodeProbe(probe, authenticate);
  assert.equal(written.length, packet.length);
  assert.deepEqual(decodeProbe(written, authenticate), probe);
  // A reply has no byte that means nothing; a request has its padding.
  if (probe.type === 'reply') assert.deepEqual(written, packet);
};

const runPathProbes = (packet: Uint8Array): void => {
  for (const part of splitPathProbes(packet)) {
    const name = refused(() => pairNameOf(part));
    const probe = refused(() => decodePathProbe(part, authenticate));
    if (name && probe) assert.deepEqual(encodePathProbe(probe, name, authenticate), part);
  }
};

/** None of them means nothing; gateways change what stands before them. */
const ECHO_PAYLOAD_BYTES = 40;
const OWN = { 4: '100.64.1.0', 6: 'fd00:1::ff' } as const;
const encoderOf = (address: string) => createEchoEncoder({ source: address, destination: address });
const DECODERS = { 4: createEchoDecoder(OWN[4]), 6: createEchoDecoder(OWN[6]) } as const;
const ENCODERS = { 4: encoderOf(OWN[4]), 6: encoderOf(OWN[6]) } as const;

const runEcho = (packet: Uint8Array): void => {
  const family = (packet[0] ?? 0) >> 4 === 4 ? 4 : 6;
  const echo = refused(() => DECODERS[family](packet), EchoError);
  if (!echo) return;
  const written = ENCODERS[family](echo);
  assert.equal(written.length, packet.length);
  assert.deepEqual(written.subarray(-ECHO_PAYLOAD_BYTES), packet.subarray(-ECHO_PAYLOAD_BYTES));
  assert.deepEqual(DECODERS[family](written), echo);
};

const withoutCode = (packet: Uint8Array): Uint8Array => {
  const copy = packet.slice();
  copy.fill(0, Math.max(0, copy.length - MAC_BYTES));
  return copy;
};

const run = (input: Uint8Array): void => {
  const packet = withoutCode(input.subarray(1));
  const kind = (input[0] ?? 0) & 3;
  if (kind === 0) runProbe(packet);
  else if (kind === 1) runPathProbes(packet);
  else runEcho(input.subarray(1));
};

const identity = { nonce: 3n, sequence: 9n, timeNs: 7n };
const of = (kind: number, packet: Uint8Array): Uint8Array => Uint8Array.from([kind, ...packet]);
const name = new Uint8Array(PAIR_NAME_BYTES).fill(5);

export const target: FuzzTarget = {
  run,
  seeds: [
    ...[OWN[4], OWN[6]].map((address) =>
      of(2, encoderOf(address)({ id: 7, sequence: 9n, token: new Uint8Array(TOKEN_BYTES).fill(3) })),
    ),
    of(0, encodeProbe({ type: 'request', ...identity, size: 90, missesEchoes: 'here' }, authenticate)),
    of(0, encodeProbe({ type: 'request', ...identity, size: PROBE_BYTES }, authenticate)),
    of(0, encodeProbe({ type: 'request', ...identity, size: 90 }, authenticate)),
    of(0, encodeProbe({ type: 'reply', ...identity, sizeReceived: 52 }, authenticate)),
    of(
      0,
      encodeProbe(
        { type: 'reply', ...identity, sizeReceived: 52, sites: { hashes: [1, 2], truncated: true } },
        authenticate,
      ),
    ),
    of(1, encodePathProbe({ ...identity, stance: 'ready' }, name, authenticate)),
    of(1, encodePathProbe({ ...identity, stance: 'direct', answers: identity }, name, authenticate)),
  ],
  maxBytes: 1200,
};
