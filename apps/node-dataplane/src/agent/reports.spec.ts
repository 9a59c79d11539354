import { expect, test } from 'vitest';
import type { SectionReport } from '../section.port.ts';
import { createReports } from './reports.ts';

const open = () => createReports([{ name: 'connectivity', isEssential: true }, { name: 'example' }]);
const fine: SectionReport = { problems: [] };
const failure = { reason: 'SectionFailed', message: 'broken' };
const reasonsOf = ({ problems }: { problems: readonly { reason: string }[] }) => problems.map(({ reason }) => reason);

test('sections are awaited until a pass of theirs has succeeded, essential ones first', () => {
  const reports = open();
  expect(reports.reported('example', fine).awaiting).toBe('essential');
  expect(reports.failed('connectivity', failure).awaiting).toBe('essential');
  expect(reports.reported('connectivity', fine).awaiting).toBeUndefined();
  expect(reports.failed('connectivity', failure).awaiting).toBeUndefined();
  const others = open();
  expect(others.reported('connectivity', fine).awaiting).toBe('others');
});

test('what a section reported stands while it fails, beside the failure', () => {
  const reports = open();
  const condition = { type: 'UnboundedExample', status: 'True', reason: 'R', message: '' } as const;
  reports.reported('example', { problems: [{ reason: 'Former', message: 'm' }], conditions: [condition] });
  const failed = reports.failed('example', failure);
  expect(failed).toMatchObject({ conditions: [condition] });
  expect(reasonsOf(failed)).toEqual(['Former', 'SectionFailed']);
  expect(reasonsOf(reports.reported('example', fine))).toEqual([]);
});

test('a section that has not reported has no annotations and conditions, but its failure is told', () => {
  const reports = open();
  reports.reported('connectivity', { problems: [], annotations: { a: 'b' } });
  expect(reports.failed('example', failure)).toMatchObject({
    annotations: { a: 'b' },
    conditions: [],
    problems: [failure],
  });
});

test('a failed write is a problem until one succeeds, whatever passes say', () => {
  const reports = open();
  reports.wrote('example', { reason: 'SectionReportFailed', message: 'forbidden' });
  expect(reasonsOf(reports.reported('example', fine))).toEqual(['SectionReportFailed']);
  expect(reasonsOf(reports.wrote('example', undefined))).toEqual([]);
});

test('the status of each section is there, as it is when asked for', () => {
  const reports = open();
  let steeredPods = 1;
  const egress = () => ({ egress: { isInForce: true, heldAddresses: [], steeredPods } });
  const connectivity = { site: 's', role: 'worker', dataplane: 'ebpf', peers: {}, groups: {} } as const;
  reports.reported('connectivity', { problems: [], status: () => ({ connectivity }) });
  const { status } = reports.reported('example', { problems: [], status: egress });
  steeredPods = 2;
  expect(status()).toEqual({ connectivity, egress: { isInForce: true, heldAddresses: [], steeredPods: 2 } });
  expect(reports.failed('connectivity', failure).status()).toHaveProperty('connectivity');
  expect(reports.reported('connectivity', fine).status()).not.toHaveProperty('connectivity');
});

test('what the node forwards by is read by the section that can, and only when it is asked for', async () => {
  const reports = open();
  const forwarding = { readTime: 't', dataplane: 'ebpf', total: 0, different: 0, entries: [] } as const;
  let reads = 0;
  expect(reports.reported('example', fine).forwarding).toBeUndefined();
  const read = async () => {
    reads++;
    return { ...forwarding, entries: [] };
  };
  const { forwarding: ask } = reports.reported('connectivity', { problems: [], forwarding: read });
  expect(reads).toBe(0);
  expect(await ask?.()).toEqual(forwarding);
  expect(reads).toBe(1);
});

test('events are told once', () => {
  const reports = open();
  const event = { type: 'Normal', reason: 'Moved', action: 'Move', note: 'n' } as const;
  expect(reports.reported('example', { problems: [], events: [event] }).events).toEqual([event]);
  expect(reports.failed('example', failure).events).toEqual([]);
});
