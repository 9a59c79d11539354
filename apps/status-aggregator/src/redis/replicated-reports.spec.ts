import { expect, test } from 'vitest';
import { packJson } from './bounded-gzip.ts';
import { createReplicatedReports } from './replicated-reports.ts';
import type { ReportStore } from './report-store.ts';
import { reportOf } from './replica.testdata.ts';

/** Ages of reports that are read from Redis, by its clock. */

const NOW_MS = Date.parse('2026-01-01T12:00:00Z');

const ageOf = async (receivedMs: number): Promise<number> => {
  const packed = await packJson(reportOf());
  const value = { epoch: 'e', revision: 1, receivedMs, order: 1, packed };
  const store = {
    async *pages() {
      yield { nowMs: NOW_MS, values: [['n1', value]] };
    },
  } as unknown as ReportStore;
  const clocks = { elapsed: () => performance.now(), now: () => new Date() };
  const reports = createReplicatedReports({ store, clocks, isUp: () => true, metrics: { skipped: () => undefined } });
  await reports.load();
  return reports.report('n1')!.ageMs;
};

test('a report is as old as the clock of Redis says', async () => {
  expect(await ageOf(NOW_MS - 5000)).toBeGreaterThanOrEqual(5000);
  expect(await ageOf(NOW_MS)).toBeLessThan(1000);
  expect(await ageOf(NOW_MS + 500)).toBeLessThan(1000);
});

test('a report from the future, of a clock that was set back since, counts as old: its node may be long gone', async () => {
  expect(await ageOf(NOW_MS + 3_600_000)).toBeGreaterThan(25_000);
});
