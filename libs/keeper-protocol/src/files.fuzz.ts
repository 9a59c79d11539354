import assert from 'node:assert/strict';
import type { FuzzTarget } from '@unbounded/testing';
import { deviceState } from './device-state.ts';
import { deviceUnit } from './device-unit.ts';
import { keeperProcesses } from './keeper-processes.ts';
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
  const device = readBack(deviceUnit, text);
  if (device) assert.match(device.netns, /^\/(?:var\/)?run\/netns\/\w[^/]*$/);
  readBack(deviceState, text);
  readBack(relayState, text);
  readBack(relayTallies, text);
  readBack(keeperProcesses, text);
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
  { processes: { wg51820: { isRunning: true, starts: 1 }, relay: { isRunning: false, starts: 3 } } },
  { services: [{ name: 'r', ways: [{ host: 'relay.example', port: 3478, isTls: true }] }], identities: [] },
  {
    trust: { staticKey: key },
    services: [],
    identities: [{ publicKey: key, privateKeyFile: '/etc/wireguard/a', peers: [{ publicKey: key, wireGuardPort: 1 }] }],
  },
  { proxies: [{ own: key, peer: key, wireGuardPort: 1, port: 2 }], relays: [{ name: 'r', connected: true }] },
  { frames: directions, bytes: directions, connections: 1, rebinds: 0, dropped: { noRelay: 3 } },
  {
    ...{ podUID: 'a-1', netns: '/run/netns/a', device: { hostName: 'a', controlURL: 'https://a.example.com' } },
    network: {
      addresses: ['100.64.0.1', 'fd7a:115c:a1e0::1'],
      rules: [{ priority: 5200, to: '100.64.0.0/10', table: 5252 }],
      routes: [{ table: 5252, to: '100.64.0.0/10', kind: 'device', metric: 1 }],
    },
  },
  { netns: '/run/netns/a', network: '0', hasIPv6: true, starts: 1, problem: 'p' },
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
