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

test('the status of each section is there under its name, as it was last', () => {
  const reports = open();
  reports.reported('connectivity', { problems: [], status: { peers: 3 } });
  expect(reports.reported('example', { problems: [], status: 0 }).status).toEqual({
    connectivity: { peers: 3 },
    example: 0,
  });
  expect(reports.failed('connectivity', failure).status).toHaveProperty('connectivity');
  expect(reports.reported('connectivity', fine).status).toEqual({ example: 0 });
});

test('events are told once', () => {
  const reports = open();
  const event = { type: 'Normal', reason: 'Moved', action: 'Move', note: 'n' } as const;
  expect(reports.reported('example', { problems: [], events: [event] }).events).toEqual([event]);
  expect(reports.failed('example', failure).events).toEqual([]);
});
