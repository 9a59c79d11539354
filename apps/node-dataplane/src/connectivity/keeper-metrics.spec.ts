import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keeperProcesses } from '@unbounded/keeper-protocol';
import { createMetrics } from '@unbounded/telemetry';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { watchKeeper } from './keeper-metrics.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keeper-metrics-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('processes are counted by kind and state, from what node-keeper writes; without it there are no series', async () => {
  const file = join(folder, 'processes.json');
  const metrics = createMetrics();
  watchKeeper(metrics, file);
  const series = async (): Promise<string[]> =>
    (await metrics.render()).split('\n').filter((line) => line.startsWith('unbounded_keeper'));
  expect(await series()).toEqual([]);
  keeperProcesses.write(file, {
    processes: {
      wg0: { isRunning: true, starts: 1 },
      wg1: { isRunning: false, starts: 4 },
      relay: { isRunning: true, starts: 0 },
    },
  });
  expect(await series()).toEqual([
    'unbounded_keeper_processes{kind="wireguard",state="running"} 1',
    'unbounded_keeper_processes{kind="wireguard",state="stopped"} 1',
    'unbounded_keeper_processes{kind="relay",state="running"} 1',
    'unbounded_keeper_processes{kind="relay",state="stopped"} 0',
    'unbounded_keeper_process_starts_total{kind="wireguard"} 5',
    'unbounded_keeper_process_starts_total{kind="relay"} 0',
  ]);
  writeFileSync(file, '{"processes": {"a name with spaces": 1}}');
  expect(await series()).toEqual([]);
});
