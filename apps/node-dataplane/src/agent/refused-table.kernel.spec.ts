import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { startScenario } from './agent-node.testdata.ts';
import type { Report } from './refused-table.scenario.ts';

const SCENARIO = join(import.meta.dirname, 'refused-table.scenario.ts');
const KINDS = ['ebpf', 'netlink'] as const;
/** Side by side: they wait most of the time. */
let reports: readonly Report[];
beforeAll(async () => {
  reports = (await Promise.all(KINDS.map((dataplane) => startScenario(SCENARIO, dataplane)))) as Report[];
}, 180_000);

describe.each(KINDS)('a restart after which the kernel refuses connectivity’s table (%s)', (dataplane) => {
  let report: Report;
  beforeAll(() => {
    report = reports[KINDS.indexOf(dataplane)]!;
  });

  test('leaves the former table in force, while another section writes its own', () => {
    expect(report.reasons).toContain('FirewallFailed');
    expect(report.tables[1]).toBe(report.tables[0]);
    expect(report.tables[0]).toContain('chain leaks');
    expect(report.hasOtherTable).toBe(true);
  });

  test('loses none of 1,000 packets a second each way between pods of two nodes', () => {
    expect(report.flow.map(({ lostCount }) => lostCount)).toEqual([0, 0]);
    for (const { sent } of report.flow) expect(sent).toBeGreaterThan(3000);
  });

  test('lets no packet for the overlay leave without a tunnel, although its route is gone', () => {
    expect(report.leaks.sent).toBeGreaterThan(50);
    expect(report.leaks.seen).toBe(0);
  });

  test('takes no packet out of a tunnel that has the address of another’s pod', () => {
    expect(report.forged.sent).toBeGreaterThan(50);
    expect(report.forged.got).toBe(0);
  });
});
