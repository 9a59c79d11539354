import { expect, test } from 'vitest';
import { elementChange } from './element-change.ts';
import type { TableContent } from './section-table.ts';

const content = (pods: readonly string[], { blocks = ['10.0.0.0/8'], drops = ['stray'] } = {}): TableContent => ({
  drops,
  sets: [
    { name: 'blocks', type: 'ipv4', elements: blocks },
    { name: 'pods', type: 'ipv4', single: true, elements: pods },
  ],
  chains: [],
});
const pods = (...elements: readonly string[]) => ({ name: 'pods', type: 'ipv4', single: true, elements });

test('of sets of single addresses what comes and what goes', () => {
  expect(elementChange(content(['10.0.0.1', '10.0.0.2']), content(['10.0.0.3', '10.0.0.2']))).toEqual({
    add: [pods('10.0.0.3')],
    remove: [pods('10.0.0.1')],
  });
  expect(elementChange(content(['10.0.0.1']), content(['10.0.0.1']))).toEqual({ add: [], remove: [] });
});

test.each([
  ['other elements of a set of prefixes', { blocks: ['192.0.2.0/24'] }],
  ['other counters', { drops: ['invalid'] }],
])('%s are more than that', (_, more) => {
  expect(elementChange(content(['10.0.0.1']), content(['10.0.0.1'], more))).toBeUndefined();
});

test('a set more, or of another type, is more than that', () => {
  const { sets, ...rest } = content(['10.0.0.1']);
  expect(elementChange(content(['10.0.0.1']), { ...rest, sets: sets!.slice(1) })).toBeUndefined();
  const intervals = sets!.map(({ name, type, elements }) => ({ name, type, elements }));
  expect(elementChange(content(['10.0.0.1']), { ...rest, sets: intervals })).toBeUndefined();
});
