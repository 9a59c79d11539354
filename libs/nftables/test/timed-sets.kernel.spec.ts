import { execFileSync } from 'node:child_process';
import { createNetns, type Netns } from '@unbounded/netlink';
import { until } from '@unbounded/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createNftables, type Nftables, type SetSpec, type TableSpec } from '../src/index.ts';

let ns: Netns;
let nft: Nftables;
beforeEach(() => {
  ns = createNetns();
  nft = createNftables({ netnsFd: ns.fd });
});
afterEach(() => {
  nft.close();
  ns.close();
});
const realNft = (...args: string[]): string =>
  execFileSync('nsenter', [`--net=${ns.path}`, 'nft', ...args], { encoding: 'utf8' });

const granted: SetSpec = { name: 'granted', type: 'ipv4', elements: [], timed: { maxElements: 100 } };
const granted6: SetSpec = { name: 'granted6', type: 'ipv6', elements: [], timed: { maxElements: 100 } };
const table: TableSpec = {
  family: 'inet',
  name: 'timed',
  sets: [granted, granted6],
  chains: [
    {
      name: 'output',
      base: { type: 'filter', hook: 'output', priority: 0 },
      rules: [{ expressions: [{ match: 'set', field: 'ip.daddr', op: '!=', set: 'granted' }, { do: 'drop' }] }],
    },
  ],
};
const shown = (): string => realNft('list', 'set', 'inet', 'timed', 'granted').replaceAll(/\s+/g, ' ');

test('elements with a time-out are those of nft, are no drift, and leave by themselves', async () => {
  await nft.replaceTable(table);
  await nft.changeElements(table, { add: [{ ...granted, elements: ['192.0.2.7', '192.0.2.8'], timeoutMs: 60_000 }] });
  await nft.changeElements(table, { add: [{ ...granted6, elements: ['2001:db8::7'], timeoutMs: 60_000 }] });
  await nft.changeElements(table, { add: [{ ...granted, elements: ['192.0.2.9'], timeoutMs: 200 }] });
  expect(shown()).toContain('size 100 flags timeout elements = { 192.0.2.');
  expect(shown()).toMatch(/192\.0\.2\.7 timeout 1m expires 5\ds/);
  expect(await nft.drift(table)).toBeUndefined();
  await until('one has expired', () => !shown().includes('192.0.2.9'));
  expect(shown()).toContain('192.0.2.8 timeout 1m');
});

test('an element that is removed and added has its new time-out, in one transaction', async () => {
  await nft.replaceTable(table);
  const one: SetSpec = { ...granted, elements: ['192.0.2.7'] };
  await nft.changeElements(table, { add: [{ ...one, timeoutMs: 60_000 }] });
  await nft.changeElements(table, { remove: [one], add: [{ ...one, timeoutMs: 3_600_000 }] });
  expect(shown()).toContain('192.0.2.7 timeout 1h');
  await nft.changeElements(table, { remove: [one] });
  await nft.changeElements(table, { remove: [one] });
  expect(shown()).not.toContain('elements');
});

test.each([
  ['a prefix', granted, '192.0.2.0/24', '192.0.2.0/24'],
  ['the other family', granted, '2001:db8::7', 'set element 2001:db8::7 must be IPv4'],
])('%s is no element', async (_, set, element, message) => {
  await nft.replaceTable(table);
  await expect(async () => nft.changeElements(table, { add: [{ ...set, elements: [element] }] })).rejects.toThrow(
    message,
  );
});

test('pairs cannot be timed', async () => {
  const sets: SetSpec[] = [{ ...granted, type: 'ipv4 . ipv4' }];
  await expect(async () => nft.replaceTable({ ...table, sets })).rejects.toThrow(
    'set granted of type "ipv4 . ipv4" must not be timed: pairs are intervals',
  );
});

test('tables of all families are listed, also those of others', async () => {
  await nft.replaceTable(table);
  realNft('add', 'table', 'bridge', 'of_others');
  realNft('add', 'table', 'ip6', 'timed');
  const listed = (await nft.listTables()).map(({ family, name }) => `${family} ${name}`);
  expect(listed.sort()).toEqual(['bridge of_others', 'inet timed', 'ip6 timed']);
});
