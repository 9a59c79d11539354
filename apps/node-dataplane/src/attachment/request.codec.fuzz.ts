import assert from 'node:assert/strict';
import type { FuzzTarget } from '@unbounded/testing';
import { decodeRequest, LARGEST_REQUEST } from './request.codec.ts';

/** What comes over the CNI socket. */
const decode = (bytes: Uint8Array): ReturnType<typeof decodeRequest> | 'refused' => {
  try {
    return decodeRequest(bytes);
  } catch (error) {
    if (error instanceof RangeError) return 'refused';
    throw error;
  }
};

const run = (input: Uint8Array): void => {
  const request = decode(input);
  if (request === 'refused') return;
  if (request === undefined) {
    assert.ok(input.length < LARGEST_REQUEST);
    return;
  }
  assert.ok(Object.entries(request.environment).every(([name, value]) => name !== '' && typeof value === 'string'));
  // A whole request is whole only with its last byte.
  const view = new DataView(input.buffer, input.byteOffset, input.length);
  const total = 9 + view.getUint32(0, true) + view.getUint32(4, true);
  assert.equal(decodeRequest(input.subarray(0, total - 1)), undefined);
  assert.deepEqual(decodeRequest(input.subarray(0, total)), request);
};

const seed = (environment: string, config: string): Uint8Array => {
  const [names, json] = [environment, config].map((text) => new TextEncoder().encode(text)) as [Uint8Array, Uint8Array];
  return Uint8Array.from([...new Uint8Array(Uint32Array.of(names.length, json.length).buffer), ...names, 0, ...json]);
};

export const target: FuzzTarget = {
  run,
  seeds: [
    seed('CNI_COMMAND=ADD\0CNI_NETNS=/run/netns/a\0', '{"cniVersion":"1.0.0"}'),
    seed('', ''),
    seed('=\0A\0', '{}'),
  ],
  tokens: ['CNI_', '=', '\0', '__proto__=', '{"'].map((text) => new TextEncoder().encode(text)),
  maxBytes: 512,
};
