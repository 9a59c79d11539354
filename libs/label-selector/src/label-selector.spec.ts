import { expect, test } from 'vitest';
import { matchesLabels } from './index.ts';

const labels = { app: 'web', tier: 'front' };
type Operator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';

test.each<[key: string, operator: Operator, values: string[] | undefined, expected: boolean]>([
  ['app', 'In', ['web', 'db'], true],
  ['app', 'In', ['db'], false],
  ['zone', 'In', ['a'], false],
  ['app', 'NotIn', ['db'], true],
  ['app', 'NotIn', ['web'], false],
  ['zone', 'NotIn', ['a'], true],
  ['app', 'Exists', undefined, true],
  ['zone', 'Exists', undefined, false],
  ['zone', 'DoesNotExist', undefined, true],
  ['app', 'DoesNotExist', undefined, false],
  ['toString', 'Exists', undefined, false],
])('%s %s %s: %s', (key, operator, values, expected) => {
  const requirement = { key, operator, ...(values && { values }) };
  expect(matchesLabels({ matchExpressions: [requirement] }, labels)).toBe(expected);
});

test('labels and requirements must all be met; an absent or empty selector selects everything', () => {
  expect(matchesLabels(undefined, {})).toBe(true);
  expect(matchesLabels({}, labels)).toBe(true);
  expect(matchesLabels({ matchLabels: labels }, labels)).toBe(true);
  expect(matchesLabels({ matchLabels: { ...labels, zone: 'a' } }, labels)).toBe(false);
});
