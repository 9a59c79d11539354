import { expect, test } from 'vitest';
import { composeView, type NodeReport } from '@unbounded/status';
import { isOldReport } from './report-age.ts';

test.each([0, 24_999, 25_000, 27_000])('a report of %d ms is old for the page when it is for the view', (ageMs) => {
  const report = { agentVersion: '1', isComplete: true, problems: [], drops: {} } as unknown as NodeReport;
  const inputs = {
    sites: [],
    pools: [],
    nodes: [{ name: 'n1', ready: 'True' as const, faults: [], knownMs: 60_000 }],
    reports: new Map([['n1', { report, ageMs, time: '2026-01-01T00:00:00.000Z' }]]),
  };
  const { source } = composeView(inputs, undefined, '2026-01-01T00:01:00.000Z').nodes['n1']!;
  expect(isOldReport(ageMs)).toBe(source !== 'report');
});
