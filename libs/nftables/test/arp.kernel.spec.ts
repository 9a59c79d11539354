import { execFileSync } from 'node:child_process';

import { createNetns, type Netns } from '@unbounded/netlink';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { createNftables, type Expression, type Hook, type Nftables, type TableSpec } from '../src/index.ts';

/** The arp family: its hooks have numbers of their own, and its rules look at ARP's fields. */

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
const drop: Expression = { do: 'drop' };
const withRule = (hook: Hook, ...expressions: Expression[]): TableSpec => ({
  family: 'arp',
  name: 'one',
  sets: [
    { name: 'overlay', type: 'ipv4', elements: ['100.64.0.0/16'] },
    { name: 'own', type: 'ifname', elements: ['vxlan0'] },
  ],
  counters: ['counted'],
  chains: [{ name: 'c', base: { type: 'filter', hook, priority: 0 }, rules: [{ expressions }] }],
});

describe('rules of ARP, as the real nft reads them back', () => {
  test.each<[string, Expression[]]>([
    ['arp saddr ip @overlay drop', [{ match: 'set', field: 'arp.spa', op: '==', set: 'overlay' }, drop]],
    ['arp daddr ip @overlay drop', [{ match: 'set', field: 'arp.tpa', op: '==', set: 'overlay' }, drop]],
    ['arp operation request drop', [{ match: 'payload', field: 'arp.operation', op: '==', value: 1 }, drop]],
    ['iifname @own drop', [{ match: 'device', key: 'iifname', op: '==', set: 'own' }, drop]],
    ['counter name "counted" drop', [{ do: 'counter', name: 'counted' }, drop]],
  ])('%s', async (text, expressions) => {
    const table = withRule('input', ...expressions);
    await nft.replaceTable(table);
    expect(realNft('list', 'chain', 'arp', 'one', 'c').split('\n')[3]?.trim()).toBe(text);
    expect(await nft.drift(table)).toBeUndefined();
  });
});

test.each(['input', 'output'] as const)('a chain at hook %s is where the real nft says', async (hook) => {
  await nft.replaceTable(withRule(hook, drop));
  expect(realNft('list', 'chain', 'arp', 'one', 'c')).toContain(`type filter hook ${hook} priority filter`);
  expect(await nft.listTables()).toEqual([{ family: 'arp', name: 'one' }]);
  expect(await nft.deleteTable('arp', 'one')).toBe(true);
  expect(realNft('list', 'tables')).toBe('');
});

test('a hook that the family has not got is refused with its name', async () => {
  await expect(nft.replaceTable(withRule('forward', drop))).rejects.toThrow('the arp family has no hook forward');
});
