import { execFileSync, spawnSync } from 'node:child_process';
import { createNetns, type Netns } from '@unbounded/netlink';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createNftables, type Expression, type Nftables, type SetSpec, type TableSpec } from '../src/index.ts';

/** Sets of addresses and pairs without prefixes: packets of a ping from one address of the loopback device to another find them. */

const ADDRESSES = { ipv4: ['192.0.2.1', '192.0.2.2', '192.0.2.3'], ipv6: ['fd00::1', 'fd00::2', 'fd00::3'] } as const;
type Kind = keyof typeof ADDRESSES;

let ns: Netns;
let nft: Nftables;
const run = (...argv: string[]): string => execFileSync('nsenter', [`--net=${ns.path}`, ...argv], { encoding: 'utf8' });
beforeEach(() => {
  ns = createNetns();
  nft = createNftables({ netnsFd: ns.fd });
  run('ip', 'link', 'set', 'lo', 'up');
  for (const address of Object.values(ADDRESSES).flat()) run('ip', 'address', 'add', address, 'dev', 'lo');
});
afterEach(() => {
  nft.close();
  ns.close();
});
/** Whether it is answered: the table lets pass what is in the set. */
const passes = (from: string, to: string): boolean =>
  spawnSync('nsenter', [`--net=${ns.path}`, 'ping', '-qc1', '-W0.2', '-I', from, to]).status === 0;

const tableOf = (set: SetSpec, match: Expression, kind: Kind): TableSpec => ({
  family: 'inet',
  name: 'single',
  sets: [set],
  chains: [
    {
      name: 'output',
      base: { type: 'filter', hook: 'output', priority: 0 },
      rules: [
        {
          expressions: [
            {
              match: 'payload',
              field: kind === 'ipv4' ? 'ip.saddr' : 'ip6.saddr',
              op: '==',
              value: ADDRESSES[kind][0],
            },
            match,
            { do: 'drop' },
          ],
        },
      ],
    },
  ],
});

describe.each(['ipv4', 'ipv6'] as const)('%s', (kind) => {
  const [first, second, third] = ADDRESSES[kind];
  const family = kind === 'ipv4' ? 'ip' : 'ip6';
  const addresses: SetSpec = { name: 'single', type: kind, single: true, elements: [second] };
  const pairs: SetSpec = {
    name: 'single',
    type: `${kind} . ${kind}`,
    single: true,
    elements: [`${first} . ${second}`],
  };
  const cases: readonly [string, SetSpec, Expression, string][] = [
    ['addresses', addresses, { match: 'set', field: `${family}.daddr`, op: '!=', set: 'single' }, third],
    [
      'pairs',
      pairs,
      { match: 'pair', fields: [`${family}.saddr`, `${family}.daddr`], op: '!=', set: 'single' },
      `${first} . ${third}`,
    ],
  ];

  test.each(cases)(
    '%s come and go one by one, those beside others too, and are what is wanted',
    async (_, set, match, next) => {
      const table = tableOf(set, match, kind);
      await nft.replaceTable(table);
      expect(await nft.drift(table)).toBeUndefined();
      expect([passes(first, second), passes(first, third)]).toEqual([true, false]);
      await nft.changeElements(table, { add: [{ ...set, elements: [next] }] });
      expect([passes(first, second), passes(first, third)]).toEqual([true, true]);
      expect(await nft.drift(table)).toBe('set single has other elements');
      expect(await nft.drift({ ...table, sets: [{ ...set, elements: [...set.elements, next] }] })).toBeUndefined();
      await nft.changeElements(table, { remove: [set] });
      expect([passes(first, second), passes(first, third)]).toEqual([false, true]);
    },
  );

  test.each(cases)('a set of prefixes is no set of single %s', async (_, set, match) => {
    const { single, ...intervals } = set;
    expect(single).toBe(true);
    const table = tableOf(set, match, kind);
    await nft.replaceTable(table);
    expect(await nft.drift({ ...table, sets: [intervals] })).toBe('set single is of another type');
  });
});

test.each([
  ['a prefix', 'ipv4', '192.0.2.0/24', '192.0.2.0/24'],
  ['the other family', 'ipv6', '192.0.2.7', 'set element 192.0.2.7 must be IPv6'],
  ['a pair with a prefix', 'ipv4 . ipv4', '192.0.2.7 . 10.0.0.0/8', '10.0.0.0/8'],
  ['one address', 'ipv4 . ipv4', '192.0.2.7', 'set element "192.0.2.7" must be two addresses'],
] as const)('%s is no element', async (_, type, element, message) => {
  const set: SetSpec = { name: 'single', type, single: true, elements: [element] };
  const match: Expression = { match: 'set', field: 'ip.saddr', op: '==', set: 'single' };
  await expect(async () => nft.replaceTable(tableOf(set, match, 'ipv4'))).rejects.toThrow(message);
});
