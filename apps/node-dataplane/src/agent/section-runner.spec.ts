import { silentLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { afterEach, expect, test } from 'vitest';
import type { Section, SectionContext, SectionPass, SectionReport, SectionType } from '../section.port.ts';
import { runSection, type SectionRunner } from './section-runner.ts';

const runners: SectionRunner[] = [];
afterEach(async () => {
  for (const runner of runners.splice(0)) await runner.stop();
});

const reports: SectionReport[] = [];
const write = async (): Promise<void> => undefined;
const fine: SectionPass = { nextPassMs: 1, report: { problems: [], write } };
const start = (type: Partial<SectionType>, pass: () => Promise<SectionPass>): SectionRunner => {
  reports.length = 0;
  const section: Section = { pass, stop: async () => undefined };
  const whole: SectionType = { name: 'example', open: async () => section, ...type };
  const runner = runSection(whole, {
    open: () => whole.open({} as SectionContext),
    submit: (report) => void reports.push(report),
    logger: silentLogger,
  });
  runners.push(runner);
  return runner;
};
const reasons = (): (readonly string[])[] => reports.map(({ problems }) => problems.map(({ reason }) => reason));

test('a section that cannot be opened is opened again', async () => {
  let opened = 0;
  start(
    {
      open: async () => {
        if (++opened < 2) throw new Error('not yet');
        return { pass: async () => fine, stop: async () => undefined };
      },
    },
    async () => fine,
  );
  await until('it works', () => reasons().at(-1)?.length === 0);
  expect(reasons()[0]).toEqual(['SectionFailed']);
  expect(reports[0]!.problems[0]!.message).toMatch(/^section example: not yet: /);
});

test('what a section reported stays while it fails, but for what would show that it works', async () => {
  let isBroken = false;
  const former = { reason: 'Former', message: 'was there' };
  start({}, async () => {
    if (isBroken) throw new Error('broken');
    return { nextPassMs: 1, report: { problems: [former], write } };
  });
  await until('a report', () => reports.length > 0);
  isBroken = true;
  await until('it fails', () => reasons().at(-1)?.length === 2);
  expect(reports.at(-1)!.write).toBeUndefined();
  expect(reasons().at(-1)).toEqual(['Former', 'SectionFailed']);
});

test('an agent is not ready before an essential section is open, and does not wait for others', () => {
  const never = (): Promise<Section> => new Promise(() => undefined);
  const pass = async (): Promise<SectionPass> => fine;
  runners.length = 0;
  expect(start({ isEssential: true, open: never }, pass).isReady).toBe(false);
  expect(start({ open: never }, pass).isReady).toBe(true);
  runners.length = 0; // they cannot be waited for
});
