import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type DataPath, startOn } from './agent-node.testdata.ts';
import type { Report } from './refused-table.scenario.ts';

export const describeRefusedTable = (dataPath: DataPath) =>
  describe(`a restart after which the kernel refuses connectivity’s table (${dataPath})`, () => {
    let report: Report;
    beforeAll(async () => {
      report = await startOn<Report>(join(import.meta.dirname, 'refused-table.scenario.ts'), dataPath);
    }, 180_000);

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
