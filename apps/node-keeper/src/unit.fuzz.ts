import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FuzzTarget } from '@unbounded/testing';
import { readRelayState } from './relay/relay-state.ts';
import { readRelayUnit } from './relay/relay-unit.ts';
import { readUnits } from './unit.ts';

/** Files that the agent writes and node-keeper, which has more rights, reads. */
const folder = mkdtempSync(join(tmpdir(), 'fuzz-units-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));

const run = (input: Uint8Array): void => {
  writeFileSync(join(folder, 'wg51820.json'), input);
  const { units, refused } = readUnits(folder);
  assert.equal(units.size + refused.length, 1);
  for (const [device, { privateKeyFile, listenPort }] of units) {
    assert.equal(device, 'wg51820');
    assert.match(privateKeyFile, /^\/etc\/wireguard\/[^/]+$/);
    assert.ok(Number.isInteger(listenPort));
  }
  readRelayState(join(folder, 'wg51820.json'));
  try {
    readRelayUnit(join(folder, 'wg51820.json'));
  } catch (error) {
    assert.ok(error instanceof Error && error.message !== '');
  }
};

const key = `${'A'.repeat(43)}=`;
const texts = [
  {
    device: 'wg51820',
    privateKeyFile: '/etc/wireguard/server.priv',
    listenPort: 51_820,
    peers: [{ publicKey: key, endpoint: '192.0.2.1:1', allowedIps: ['192.0.2.0/24'] }],
  },
  { services: [{ name: 'r', ways: [{ host: 'relay.example', port: 3478, isTls: true }] }], identities: [] },
  { proxies: [{ own: key, peer: key, wireGuardPort: 1, port: 2 }], relays: [{ name: 'r', connected: true }] },
].map((value) => new TextEncoder().encode(JSON.stringify(value)));

export const target: FuzzTarget = {
  run,
  seeds: texts,
  tokens: ['{', '}', '[', ']', '"', ',', ':', 'null', '1e999', '-1', '"__proto__":', '\\u0000', '../', key].map(
    (text) => new TextEncoder().encode(text),
  ),
  maxBytes: 1024,
};
