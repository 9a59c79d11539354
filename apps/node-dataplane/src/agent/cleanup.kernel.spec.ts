import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runScenario } from './agent-node.testdata.ts';
import type { Report } from './cleanup.scenario.ts';

test('uninstall goes on where a section cannot be cleaned up, says so, keeps the state for another try, which succeeds', () => {
  const [failed, again] = runScenario(join(import.meta.dirname, 'cleanup.scenario.ts')) as readonly [Report, Report];
  expect(failed.error).toBe('section egress: a device is busy');
  expect(failed.said).toContain('FAILED section egress: a device is busy');
  for (const { tables, routes } of [failed, again]) {
    expect(tables).toEqual(['table inet others']);
    expect(routes).toEqual(['unreachable 192.0.2.130 proto 130']);
  }
  expect(failed.hasState).toBe(true);
  expect([again.error, again.hasState]).toEqual([undefined, false]);
  // The agents of a tailnet still run: they remove their devices afterwards.
  expect(again.running).toEqual(['tailnet', 'tailnet/unit.json']);
});
