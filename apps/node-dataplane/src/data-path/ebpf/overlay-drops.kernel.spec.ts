import { join } from 'node:path';
import { STATS } from '@unbounded/bpf-maps';
import { beforeAll, expect, test } from 'vitest';
import { runScenario } from '../../agent/agent-node.testdata.ts';
import type { Report } from './overlay-drops.scenario.ts';

const REASONS = STATS.flatMap((stat) => (stat.startsWith('drop_') ? [stat.slice('drop_'.length)] : []));

let report: Report;
beforeAll(() => {
  report = runScenario(join(import.meta.dirname, 'overlay-drops.scenario.ts')) as Report;
}, 60_000);

test('there is a packet for each reason for which the eBPF programs drop one', () => {
  expect(Object.keys(report).sort()).toEqual([...REASONS].sort());
});

test.each(REASONS)('a packet that is dropped as %s raises the agent’s metric of that reason by one', (reason) => {
  const [before, after] = report[reason]!;
  expect(after - before).toBe(1);
});
