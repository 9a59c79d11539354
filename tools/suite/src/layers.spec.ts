import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  CHECK_BUDGET_SECONDS,
  CI_BUDGET_SECONDS,
  LAYERS,
  layerNamed,
  SET_UP_BUDGET_SECONDS,
  specsOf,
} from './layers.ts';
import { LONG } from './longest-first.ts';

const root = join(import.meta.dirname, '../../..');

test('every spec is in exactly one layer, so in one tier, and no layer is empty', () => {
  const exclude = ['**/node_modules/**', '**/dist/**', '**/build/**'];
  const all = globSync('{apps,libs,tools,bpf}/**/*.spec.ts', { cwd: root, exclude }).sort();
  expect(all.length).toBeGreaterThan(200);
  expect(LAYERS.flatMap((layer) => specsOf(root, layer)).sort()).toEqual(all);
  expect(LAYERS.filter((layer) => specsOf(root, layer).length === 0)).toEqual([]);
  expect(new Set(LAYERS.map(({ name }) => name)).size).toBe(LAYERS.length);
});

test('the specs that begin first are there', () => {
  expect(LONG.map(([file]) => file).filter((file) => !existsSync(join(root, file)))).toEqual([]);
});

test('what stands before .spec.ts is a role that a layer names, or none', () => {
  const known = new Set(LAYERS.flatMap(({ roles }) => roles.split('.').filter(Boolean)));
  const last = (file: string): string => file.split('.').at(-3)!;
  expect(specsOf(root, layerNamed('unit')).filter((file) => known.has(last(file)))).toEqual([]);
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
