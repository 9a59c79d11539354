import assert from 'node:assert/strict';
import { NetlinkDecodeError, readAttributes } from '@unbounded/netlink';
import type { FuzzTarget } from '@unbounded/testing';
import { WireGuardError } from './device.ts';
import { formatEndpoint, parseEndpoint } from './endpoint.codec.ts';
import { decodeDevice, encodeChange } from './generic.codec.ts';
import { isKey, keyBytes, keyText } from './key.codec.ts';
import { parseState, readErrno } from './uapi.codec.ts';

/** Devices as the kernel and wireguard-go show them, endpoints and keys as objects hold them. Input: a byte for which, the rest. */
const refused = <T>(read: () => T): T | undefined => {
  try {
    return read();
  } catch (error) {
    if (error instanceof NetlinkDecodeError || error instanceof WireGuardError) return undefined;
    throw error;
  }
};

const runEndpoint = (text: string): void => {
  const endpoint = refused(() => parseEndpoint(text));
  if (endpoint) assert.deepEqual(parseEndpoint(formatEndpoint(endpoint)), endpoint);
  const key = refused(() => keyBytes(text));
  assert.equal(key !== undefined, isKey(text));
  if (key) assert.equal(keyText(key), text);
};

const run = (input: Uint8Array): void => {
  const rest = input.subarray(1);
  const text = (): string => new TextDecoder().decode(rest);
  switch ((input[0] ?? 0) % 4) {
    case 0:
      refused(() => decodeDevice(readAttributes(rest)));
      break;
    case 1:
      refused(() => parseState(text()));
      break;
    case 2:
      refused(() => readErrno(text()));
      break;
    default:
      runEndpoint(text());
  }
};

const key = keyText(new Uint8Array(32).fill(1));
const hex = '01'.repeat(32);
const of = (which: number, bytes: Uint8Array | string): Uint8Array =>
  Uint8Array.from([which, ...(typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes)]);
const change = {
  listenPort: 51_820,
  peers: [
    { op: 'add', publicKey: key, endpoint: '[2001:db8::1]:51820', allowedIps: ['192.0.2.0/24', '2001:db8::/32'] },
  ],
} as const;

export const target: FuzzTarget = {
  run,
  seeds: [
    ...encodeChange('wg0', change).map((bytes) => of(0, bytes)),
    of(
      1,
      `private_key=${hex}\nlisten_port=51820\npublic_key=${hex}\nendpoint=192.0.2.1:51820\nallowed_ip=192.0.2.0/24\nlast_handshake_time_sec=1\nerrno=0\n\n`,
    ),
    of(2, 'errno=-19\n\n'),
    of(3, '[2001:db8::1%eth0]:51820'),
    of(3, key),
  ],
  tokens: ['\n', '=', 'public_key=', 'endpoint=', 'errno=', '::', '192.0.2.1'].map((text) =>
    new TextEncoder().encode(text),
  ),
  maxBytes: 512,
};
