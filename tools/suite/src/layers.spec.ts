import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  CHECK_BUDGET_SECONDS,
  CI_BUDGET_SECONDS,
  SET_UP_BUDGET_SECONDS,
  globsOf,
  LAYERS,
  layerNamed,
  PROJECTS,
} from './layers.ts';

const root = join(import.meta.dirname, '../../..');
const without = ['**/node_modules/**', '**/dist/**', '**/build/**'];
const specsOf = (include: readonly string[], exclude: readonly string[]): string[] =>
  globSync(include, { cwd: root, exclude: [...without, ...exclude] }).sort();

test('every spec is in exactly one project, so in one layer and one tier', () => {
  const all = specsOf(['{apps,libs,tools,bpf}/**/*.spec.ts'], []);
  const placed = PROJECTS.flatMap((project) => {
    const { include, exclude } = globsOf(project);
    return specsOf(include, exclude);
  });
  expect(all.length).toBeGreaterThan(200);
  expect(placed.sort()).toEqual(all);
  expect(new Set(PROJECTS.map(({ name }) => name)).size).toBe(PROJECTS.length);
  for (const of of PROJECTS) expect(specsOf(globsOf(of).include, globsOf(of).exclude), of.name).not.toEqual([]);
});

test('what stands before .spec.ts is a role that a project names, or none', () => {
  const known = new Set(PROJECTS.flatMap(({ roles }) => roles.split('.').filter(Boolean)));
  const unit = specsOf(globsOf(PROJECTS[0]!).include, globsOf(PROJECTS[0]!).exclude);
  const last = (file: string): string => file.split('.').at(-3)!;
  expect(unit.filter((file) => known.has(last(file)))).toEqual([]);
});

test('every layer that CI runs has a budget, and together they keep to 12 minutes', () => {
  const layers = LAYERS.filter(({ tier }) => tier === 'ci');
  for (const { name, budgetSeconds } of layers) expect(budgetSeconds, name).toBeGreaterThan(0);
  const others = SET_UP_BUDGET_SECONDS + CHECK_BUDGET_SECONDS;
  const seconds = layers.reduce((sum, { budgetSeconds = 0 }) => sum + budgetSeconds, others);
  expect(seconds).toBeLessThanOrEqual(CI_BUDGET_SECONDS);
});

test('a layer that does not exist is refused with the names of those that do', () => {
  expect(() => layerNamed('kernle')).toThrow('"kernle" is not a layer: it must be one of unit, bpf,');
});
