import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { runScenario } from '../agent/agent-node.testdata.ts';
import type { Report } from './full-disk.scenario.ts';

describe.each(['ebpf', 'netlink'] as const)('a node whose disk is full (%s)', (dataplane) => {
  let report: Report;
  beforeAll(() => {
    const scenario = join(import.meta.dirname, 'full-disk.scenario.ts');
    report = runScenario(scenario, dataplane) as Report;
  }, 240_000);

  const expected = {
    routes: expect.arrayContaining(['100.66.0.0/16']),
    podNetwork: true,
    ...(dataplane === 'ebpf' ? { programs: 2, entries: expect.any(Number) } : { programs: 0, entries: 0 }),
  };

  test('forwards all the same, with its source check, and takes pods', () => {
    expect(report.full).toMatchObject({ ...expected, files: [], add: 0 });
    if (dataplane === 'ebpf') expect(report.full.entries).toBeGreaterThan(0);
  });

  test('says what it cannot keep', () => {
    expect(report.full.reasons).toContain('StateNotWritable');
  });

  test('keeps everything as soon as there is room', () => {
    expect(report.freed).toEqual({
      files: expect.arrayContaining([
        'groups.json',
        'health.json',
        'plan-connectivity.json',
        'pods.json',
        'sysctls.json',
      ]),
      pod: true,
      unwritten: 'unbounded_state_files_unwritten 0',
    });
  });

  test('forwards by the kept plan after a reboot, its disk full, its API server’s name not resolvable, its clock set either way', () => {
    expect(report.rebooted).toHaveLength(2);
    for (const state of report.rebooted)
      expect(state).toMatchObject({ ...expected, generation: 'unbounded_wireguard_key_generation 0' });
  });
});
