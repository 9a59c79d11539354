import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LINK_ALIAS } from '@unbounded/config/ownership';
import type { RouteEvent } from '@unbounded/netlink';
import { silentLogger } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Section, SectionContext } from '../section.port.ts';
import { createStateFaults, type StateFaults } from '../state/state-faults.ts';
import { isString, stateFile } from '../state/state-file.ts';
import { nodeSection } from './node-section.ts';

let folder: string;
let faults: StateFaults;
let notes: string[];
let unguarded: Problem[];
let triggered: number;
let detached: number;
let concerns: (event: RouteEvent) => boolean;
let isWatched: boolean;
let section: Section;

const guard = { ensure: async () => unguarded, takeNotes: () => notes.splice(0) };
const nft = {
  monitor: () => {
    isWatched = true;
    return { close: () => void (isWatched = false) };
  },
};

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'node-section-'));
  faults = createStateFaults();
  [notes, unguarded, triggered, detached] = [[], [], 0, 0];
  section = await nodeSection.open({
    attachment: { guard, detachGone: async () => void detached++ },
    nft,
    faults,
    trigger: () => void triggered++,
    onKernelChange: (filter: typeof concerns) => void (concerns = filter),
    logger: silentLogger,
  } as unknown as SectionContext);
});
afterEach(async () => {
  await section.stop();
  rmSync(folder, { recursive: true });
});

test('repairs the guard of pods at each pass, and reports what it cannot, and what pods tried once', async () => {
  unguarded = [{ reason: 'SourceGuardFailed', message: 'of the test' }];
  notes = ['a pod tried', 'another one did'];
  const note = 'a pod tried; another one did';
  const { nextPassMs, report } = await section.pass();
  expect(nextPassMs).toBe(5000);
  expect(report.problems).toEqual(unguarded);
  expect(report.events).toEqual([{ type: 'Warning', reason: 'PodFramesDropped', action: 'GuardPods', note }]);
  expect((await section.pass()).report.events).toEqual([]);
});

test('looks for pods that went unheard of at each pass', async () => {
  await section.pass();
  await section.pass();
  expect(detached).toBe(2);
});

test('hears of a file that cannot be written, reports it, and writes it once that works', async () => {
  const path = join(folder, 'state.json');
  mkdirSync(`${path}.new`);
  const file = stateFile(path, isString, faults);
  file.write('a');
  expect(triggered).toBe(1);
  expect((await section.pass()).report.problems.map(({ reason }) => reason)).toEqual(['StateNotWritable']);
  expect(triggered).toBe(1);
  rmSync(`${path}.new`, { recursive: true });
  expect((await section.pass()).report.problems).toEqual([]);
  expect(file.read()).toBe('a');
});

test('hears of ports that go and of the bridge, and of nothing else in the kernel', () => {
  const link = (change: 'new' | 'deleted', alias?: string) =>
    concerns({ subject: 'link', change, value: { alias } } as unknown as RouteEvent);
  expect([link('deleted'), link('new', LINK_ALIAS), link('new')]).toEqual([true, true, false]);
  expect(concerns({ subject: 'address', change: 'deleted', value: {} } as unknown as RouteEvent)).toBe(false);
});

test('watches the table of the guard until it stops', async () => {
  expect(isWatched).toBe(true);
  await section.stop();
  expect(isWatched).toBe(false);
});
