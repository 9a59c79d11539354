import assert from 'node:assert/strict';
import type { FuzzTarget } from '@unbounded/testing';
import { KeeperProtocolError, type ProtocolFile } from './protocol-file.ts';
import { rejections } from './rejections.ts';
import { relayState } from './relay-state.ts';
import { relayTallies } from './relay-tallies.ts';
import { relayUnit } from './relay-unit.ts';
import { tunnelUnit } from './tunnel-unit.ts';

/** Files that the agent writes and node-keeper, which has more rights, reads; and those that it answers with. */

const LONGEST_MESSAGE = 4000;

/** Read, it can be written, and read as the same; else it is refused as documented. */
const readBack = <T>(file: ProtocolFile<T>, text: string): T | undefined => {
  let value: T;
  try {
    value = file.parse(text);
  } catch (error) {
    assert.ok(error instanceof KeeperProtocolError, String(error));
    assert.ok(error.message.length < LONGEST_MESSAGE);
    return undefined;
  }
  assert.deepEqual(file.parse(file.format(value)), value);
  return value;
};

const run = (input: Uint8Array): void => {
  const text = new TextDecoder().decode(input);
  const tunnel = readBack(tunnelUnit, text);
  if (tunnel) assert.match(tunnel.device, /^wg\d{1,5}$/);
  for (const { privateKeyFile } of [...(tunnel ? [tunnel] : []), ...(readBack(relayUnit, text)?.identities ?? [])])
    assert.match(privateKeyFile, /^\/etc\/wireguard\/[^/]+$/);
  readBack(relayState, text);
  readBack(relayTallies, text);
  readBack(rejections, text);
};

const key = `${'A'.repeat(43)}=`;
const directions = { sent: 1, received: 2 };
const texts = [
  {
    device: 'wg51820',
    privateKeyFile: '/etc/wireguard/server.priv',
    listenPort: 51_820,
    peers: [{ publicKey: key, endpoint: '192.0.2.1:1', allowedIps: ['192.0.2.0/24'] }],
    version: 2,
    minReaderVersion: 1,
  },
  { services: [{ name: 'r', ways: [{ host: 'relay.example', port: 3478, isTls: true }] }], identities: [] },
  {
    trust: { staticKey: key },
    services: [],
    identities: [{ publicKey: key, privateKeyFile: '/etc/wireguard/a', peers: [{ publicKey: key, wireGuardPort: 1 }] }],
  },
  { proxies: [{ own: key, peer: key, wireGuardPort: 1, port: 2 }], relays: [{ name: 'r', connected: true }] },
  { frames: directions, bytes: directions, connections: 1, rebinds: 0, dropped: { noRelay: 3 } },
  ['wg51820.json: a reason'],
].map((value) => new TextEncoder().encode(JSON.stringify(value)));

export const target: FuzzTarget = {
  run,
  seeds: texts,
  tokens: ['{', '}', '[', ']', '"', ',', ':', 'null', '1e999', '-1', '"__proto__":', '\\u0000', '../', key].map(
    (text) => new TextEncoder().encode(text),
  ),
  maxBytes: 1024,
};
