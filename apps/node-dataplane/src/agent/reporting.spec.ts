import { silentLogger } from '@unbounded/telemetry';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { AgentReport } from '../world/reporter.port.ts';
import { createReporting, type Reporting } from './reporting.ts';

let open: Reporting | undefined;
beforeEach(() => void vi.useFakeTimers());
afterEach(async () => {
  await open?.stop();
  vi.useRealTimers();
});

const never = (): Promise<void> => new Promise(() => undefined);
const failure = { reason: 'SectionFailed', message: 'broken' };

const start = () => {
  const sent: AgentReport[] = [];
  const types = [{ name: 'connectivity', isEssential: true }, { name: 'example' }];
  const reporter = { report: async (report: AgentReport) => void sent.push(report) };
  const reporting = createReporting(types, { reporter, logger: silentLogger });
  open = reporting;
  const connectivity = reporting.of('connectivity', () => undefined);
  const example = reporting.of('example', () => undefined);
  const problems = (): readonly string[] => sent.at(-1)!.problems.map(({ message }) => message);
  return { sent, connectivity, example, problems };
};

test('a write that hangs delays neither the Node’s part nor the writes of other sections', async () => {
  const { sent, connectivity, example } = start();
  const write = vi.fn(async () => undefined);
  example.submit({ problems: [], annotations: { a: '1' }, write: never });
  await vi.advanceTimersByTimeAsync(0);
  connectivity.submit({ problems: [], annotations: { b: '2' }, write });
  await vi.advanceTimersByTimeAsync(0);
  expect(sent.at(-1)!.annotations).toEqual({ a: '1', b: '2' });
  expect(write).toHaveBeenCalledTimes(1);
});

test('a write that fails is a problem of its section, which goes when one succeeds', async () => {
  const { connectivity, example, problems } = start();
  connectivity.submit({ problems: [] });
  example.submit({ problems: [], write: () => Promise.reject(new Error('is forbidden')) });
  await vi.advanceTimersByTimeAsync(1000);
  expect(problems()).toEqual([expect.stringMatching(/^section example: .*: is forbidden: /)]);
  example.submit({ problems: [], write: async () => undefined });
  await vi.advanceTimersByTimeAsync(0);
  expect(problems()).toEqual([]);
});

test('a write runs only with a new report of its own section', async () => {
  const { connectivity, example } = start();
  const write = vi.fn(async () => undefined);
  connectivity.submit({ problems: [], write });
  await vi.advanceTimersByTimeAsync(0);
  for (let i = 0; i < 3; i++) {
    example.submit({ problems: [] });
    connectivity.fail(failure);
    await vi.advanceTimersByTimeAsync(20_000);
  }
  expect(write).toHaveBeenCalledTimes(1);
  connectivity.submit({ problems: [], write });
  await vi.advanceTimersByTimeAsync(0);
  expect(write).toHaveBeenCalledTimes(2);
});
