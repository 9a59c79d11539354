import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMetrics } from '@unbounded/telemetry';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createRelayMetrics } from './metrics.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tallies-'));
  file = join(folder, 'relay-tallies.json');
});
afterEach(() => rmSync(folder, { recursive: true }));

const tallies = {
  frames: { sent: 5, received: 4 },
  bytes: { sent: 500, received: 400 },
  connections: 2,
  rebinds: 1,
  dropped: { noRelay: 3, slowRelay: 0 },
};
const rendered = () => {
  const metrics = createMetrics();
  createRelayMetrics(metrics, { talliesFile: file, relays: () => ({ connected: ['a', 'b'], away: ['c'] }) });
  return async () => (await metrics.render()).match(/^unbounded_\S+ \d+$/gm)?.sort();
};

test('what the proxies have counted is shown as it stands at each look', async () => {
  const lines = rendered();
  writeFileSync(file, JSON.stringify({ ...tallies, frames: { sent: 1, received: 1 } }));
  await lines();
  writeFileSync(file, JSON.stringify(tallies));
  expect(await lines()).toEqual([
    'unbounded_relay_client_bytes_total{direction="received"} 400',
    'unbounded_relay_client_bytes_total{direction="sent"} 500',
    'unbounded_relay_client_connections_total 2',
    'unbounded_relay_client_dropped_total{reason="noRelay"} 3',
    'unbounded_relay_client_dropped_total{reason="slowRelay"} 0',
    'unbounded_relay_client_frames_total{direction="received"} 4',
    'unbounded_relay_client_frames_total{direction="sent"} 5',
    'unbounded_relay_client_rebinds_total 1',
    'unbounded_relay_client_relays{state="connected"} 2',
    'unbounded_relay_client_relays{state="disconnected"} 1',
  ]);
});

test.each([
  ['is not there', undefined],
  ['is no JSON', '{'],
  ['has names that are no labels', JSON.stringify({ ...tallies, dropped: { 'x"y': 1 } })],
  ['counts backwards', JSON.stringify({ ...tallies, frames: { sent: -1, received: 0 } })],
])('a file that %s counts nothing', async (_, text) => {
  if (text !== undefined) writeFileSync(file, text);
  expect(await rendered()()).toEqual([
    'unbounded_relay_client_connections_total 0',
    'unbounded_relay_client_rebinds_total 0',
    'unbounded_relay_client_relays{state="connected"} 2',
    'unbounded_relay_client_relays{state="disconnected"} 1',
  ]);
});
