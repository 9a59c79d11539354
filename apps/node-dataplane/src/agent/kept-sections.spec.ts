import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keptPlanFile } from '@unbounded/config/ownership';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createStateFaults } from '../state/state-faults.ts';
import { openKeptSections } from './kept-sections.ts';

const NAMES = ['connectivity', 'egress'];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kept-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const open = (names: readonly string[] = NAMES) => openKeptSections(folder, names, createStateFaults());
/** Both sections have kept a plan. */
const keepBoth = (): void => {
  const kept = open();
  kept.of('connectivity').write({ version: 1, plan: { blocks: ['192.0.2.0/24'] } });
  kept.of('egress').write({ version: 3, plan: ['a'] });
};

test('the next agent finds what each section kept', () => {
  keepBoth();
  expect(NAMES.map((name) => open().of(name).read())).toEqual([
    { version: 1, plan: { blocks: ['192.0.2.0/24'] } },
    { version: 3, plan: ['a'] },
  ]);
  expect(open().of('connectivity').read()).not.toHaveProperty('egress');
});

test('a write of one section touches no file of another', () => {
  keepBoth();
  const other = keptPlanFile('connectivity', folder);
  const before = [statSync(other).ino, readFileSync(other, 'utf8')];
  open()
    .of('egress')
    .write({ version: 3, plan: ['b'] });
  expect([statSync(other).ino, readFileSync(other, 'utf8')]).toEqual(before);
  expect(readFileSync(other, 'utf8')).not.toContain('egress');
  expect(readdirSync(folder).sort()).toEqual(['plan-connectivity.json', 'plan-egress.json']);
});

test.each([
  ['is cut short', '{"version":3,"pl'],
  ['is empty', ''],
  ['holds something else', '[]'],
  ['has no version', '{"plan":["a"]}'],
  ['has no plan', '{"version":3}'],
  ['has a version that is no number', '{"version":"3","plan":["a"]}'],
])('a file that %s costs its section its plan, and no other', (_, text) => {
  keepBoth();
  writeFileSync(keptPlanFile('egress', folder), text);
  const kept = open();
  expect([kept.of('egress').read(), kept.of('connectivity').read()?.version]).toEqual([undefined, 1]);
  kept.of('egress').write({ version: 3, plan: ['b'] });
  expect(open().of('egress').read()).toEqual({ version: 3, plan: ['b'] });
});

test('plans of sections that are no more go, also the file of all sections, and nothing else', () => {
  keepBoth();
  for (const name of ['plan.json', 'planner.json', 'pods.json']) writeFileSync(join(folder, name), '{}');
  const kept = open(['connectivity']);
  expect(readdirSync(folder).sort()).toEqual(['plan-connectivity.json', 'planner.json', 'pods.json']);
  expect(kept.of('connectivity').read()?.version).toBe(1);
});

test('a folder that is not there yet is made by the first write', () => {
  const kept = openKeptSections(join(folder, 'deep'), NAMES, createStateFaults());
  expect(kept.of('egress').read()).toBeUndefined();
  kept.of('egress').write({ version: 3, plan: ['a'] });
  expect(readdirSync(join(folder, 'deep'))).toEqual(['plan-egress.json']);
});
