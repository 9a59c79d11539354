import { expect, test } from 'vitest';

import { changedConditions, withCondition } from './conditions.ts';

const ready = { type: 'Ready', status: 'True', reason: 'Ok', message: 'fine' } as const;
const [early, late] = [new Date('2026-01-01T00:00:00.500Z'), new Date('2026-01-02T00:00:00Z')];

test('the transition time changes with the status only, and has whole seconds', () => {
  const first = withCondition(undefined, ready, early);
  expect(first).toEqual([{ ...ready, lastTransitionTime: '2026-01-01T00:00:00Z' }]);
  expect(withCondition(first, { ...ready, message: 'still fine' }, late)).toMatchObject([
    { message: 'still fine', lastTransitionTime: '2026-01-01T00:00:00Z' },
  ]);
  expect(withCondition(first, { ...ready, status: 'False' }, late)).toMatchObject([
    { lastTransitionTime: '2026-01-02T00:00:00Z' },
  ]);
});

test('nothing new gives the list itself', () => {
  const first = withCondition(undefined, ready, early);
  expect(withCondition(first, ready, late)).toBe(first);
  expect(changedConditions(first, [ready])).toEqual([]);
  expect(changedConditions(first, [ready, { ...ready, type: 'Other' }])).toMatchObject([{ type: 'Other' }]);
});

test('other conditions stay, and the list is in order of type', () => {
  const list = withCondition(withCondition(undefined, ready, early), { ...ready, type: 'Accepted' }, early);
  expect(list.map(({ type }) => type)).toEqual(['Accepted', 'Ready']);
});
