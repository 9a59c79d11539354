import { createMetrics, type Metrics, silentLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { afterEach, expect, test } from 'vitest';
import type { Section, SectionContext, SectionPass, SectionType } from '../section.port.ts';
import type { AgentReport } from '../world/reporter.port.ts';
import { createReports } from './reports.ts';
import { runSection, type SectionRunner } from './section-runner.ts';

const runners: SectionRunner[] = [];
afterEach(async () => {
  for (const runner of runners.splice(0)) await runner.stop();
});

const reports: AgentReport[] = [];
let metrics: Metrics;
const fine: SectionPass = { nextPassMs: 1, report: { problems: [] } };
const start = (type: Partial<SectionType>, pass: () => Promise<SectionPass>): SectionRunner => {
  reports.length = 0;
  metrics = createMetrics();
  const merged = createReports([{ name: 'example' }]);
  const section: Section = { pass, stop: async () => undefined };
  const whole: SectionType = { name: 'example', open: async () => section, ...type };
  const runner = runSection(whole, {
    open: () => whole.open({} as SectionContext),
    metrics,
    reporting: {
      submit: (report) => void reports.push(merged.reported('example', report)),
      fail: (problem) => void reports.push(merged.failed('example', problem)),
    },
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

test('what a section reported stays while it fails, and its failure goes with the next pass', async () => {
  let isBroken = false;
  const former = { reason: 'Former', message: 'was there' };
  start({}, async () => {
    if (isBroken) throw new Error('broken');
    return { nextPassMs: 1, report: { problems: [former] } };
  });
  await until('a report', () => reports.length > 0);
  isBroken = true;
  await until('it fails', () => reasons().at(-1)?.length === 2);
  expect(reasons().at(-1)).toEqual(['Former', 'SectionFailed']);
  isBroken = false;
  await until('it works again', () => reasons().at(-1)?.length === 1);
});

test('passes are counted by result, measured, and the time of the last success is shown', async () => {
  let isBroken = true;
  const startSeconds = Date.now() / 1000;
  start({}, async () => {
    if (isBroken) throw new Error('broken');
    return { nextPassMs: 60_000, report: { problems: [] } };
  });
  const valueOf = async (name: string): Promise<number | undefined> => {
    const text = await metrics.render();
    const line = text.split('\n').find((one) => one.startsWith(`unbounded_agent_section_${name}`));
    return line === undefined ? undefined : Number(line.split(' ').at(-1));
  };
  await until('it fails', () => reports.length > 0);
  expect(await valueOf('passes_total{section="example",result="failure"}')).toBe(1);
  expect(await valueOf('passes_total{section="example",result="success"}')).toBe(0);
  expect(await valueOf('last_success_timestamp_seconds{')).toBeUndefined();
  isBroken = false;
  await until('it works', () => reasons().at(-1)?.length === 0);
  expect(await valueOf('passes_total{section="example",result="success"}')).toBe(1);
  expect(await valueOf('pass_duration_seconds_count{section="example"}')).toBe(2);
  expect(await valueOf('last_success_timestamp_seconds{section="example"}')).toBeGreaterThanOrEqual(startSeconds);
});

test('an agent is not ready before an essential section is open, and does not wait for others', () => {
  const never = (): Promise<Section> => new Promise(() => undefined);
  const pass = async (): Promise<SectionPass> => fine;
  runners.length = 0;
  expect(start({ isEssential: true, open: never }, pass).isReady).toBe(false);
  expect(start({ open: never }, pass).isReady).toBe(true);
  runners.length = 0; // they cannot be waited for
});

test('the size of a section’s plan is shown by kind, and a kind that is none any more has no series', async () => {
  let planned: Readonly<Record<string, number>> = { ports: 2, networks: 1 };
  start({}, async () => ({ ...fine, planned }));
  const sizes = async (): Promise<string[]> =>
    (await metrics.render()).split('\n').filter((line) => line.startsWith('unbounded_agent_plan_entries'));
  await until('a pass', async () => (await sizes()).length > 0);
  expect(await sizes()).toEqual([
    'unbounded_agent_plan_entries{section="example",kind="ports"} 2',
    'unbounded_agent_plan_entries{section="example",kind="networks"} 1',
  ]);
  planned = { ports: 3 };
  await until('the next pass', async () => (await sizes()).length === 1);
  expect(await sizes()).toEqual(['unbounded_agent_plan_entries{section="example",kind="ports"} 3']);
});
