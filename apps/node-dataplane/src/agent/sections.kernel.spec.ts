import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { DATA_PATHS, startOnBoth } from './agent-node.testdata.ts';
import { HOOK_MS } from './example-section.testdata.ts';
import type { Report } from './sections.scenario.ts';

let reports: Awaited<ReturnType<typeof startOnBoth<Report>>>;
beforeAll(async () => {
  reports = await startOnBoth<Report>(join(import.meta.dirname, 'sections.scenario.ts'));
}, 180_000);

describe.each(DATA_PATHS)('an agent with a second section (%s)', (dataplane) => {
  let report: Report;
  beforeAll(() => {
    report = reports[dataplane];
  });

  const MADE = {
    routes: ['unreachable 192.0.2.0/24'],
    chains: ['input'],
    kept: ['plan-connectivity.json', 'plan-example.json'],
    condition: '192.0.2.0/24',
  };

  test('has its route, its chain, its condition from its thread, and its kept plan', () => {
    expect(report.made).toEqual(MADE);
  });

  test('writes nothing at rest', () => {
    expect(report.atRest.after).toBe(report.atRest.before);
  });

  test('goes on while the section fails, and says so', () => {
    expect(report.failing).toEqual({ reasons: ['SectionFailed'], repaired: true });
  });

  test('keeps the former rules while the kernel refuses those of the section', () => {
    expect(report.refused).toEqual({ reasons: ['ExampleFirewallFailed'], chains: ['input'] });
  });

  test('refuses only the pod whose hook hangs, and others do not wait for it', () => {
    expect(report.hanging.map(({ pod, exitCode }) => [pod, exitCode])).toEqual([
      ['default', 0],
      ['example', 1],
      ['example', 0],
    ]);
    expect(JSON.parse(report.hanging[1]!.output)).toMatchObject({
      code: 11,
      msg: `section example: no answer within ${HOOK_MS} ms`,
    });
  });

  test('releases addresses of pods of the boot before, and none once there are pods of this one', () => {
    expect(report.reserved).toEqual({
      afterBoot: ['last_reserved_ip.0'],
      withPods: ['100.65.30.9', 'last_reserved_ip.0'],
    });
  });

  test('takes the kept plan of the section up again without objects', () => {
    expect(report.restarted).toEqual(MADE);
  });

  test('has nothing of the section any more without it', () => {
    expect(report.removed).toEqual({ routes: [], chains: [], kept: ['plan-connectivity.json'], condition: undefined });
    expect(report.connectivityRoutes.length).toBeGreaterThan(0);
  });
});
