import { expect, test } from 'vitest';
import { l2SnapshotOf } from './l2-inputs.ts';

const nothing = { networks: [], endpoints: [], fdbEntries: [], neighbors: [] };
const locators = new Map([
  ['n1', 'fd53:0:0:1::/64'],
  ['n2', 'fd53:0:0:2::/64'],
]);
const unreached = (...routed: string[]): string[] => [
  ...l2SnapshotOf(nothing, { node: 'n1', locators, routed, ports: new Set() }).unreached,
];

test('a node is reached by frames where a link leads to the whole block of its locators, by itself or among others', () => {
  expect(unreached('fd53:0:0:1::/64', 'fd53:0:0:2::/64')).toEqual([]);
  expect(unreached('10.0.0.0/8', 'fd53::/32')).toEqual([]);
  expect(unreached('10.0.0.0/8', 'fd53:0:0:1::/64', 'fd53:0:0:2::/65')).toEqual(['n2']);
  expect(unreached()).toEqual(['n1', 'n2']);
});
