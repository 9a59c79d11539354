import { execFileSync } from 'node:child_process';

import { createNetns, createRouteSocket, type Netns } from '@unbounded/netlink';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { createNftables, type Expression, type Nftables, type SetSpec, type TableSpec } from '../src/index.ts';

/** What the bridge family has besides: frames, ARP, and sets of what comes in by an interface. */

let ns: Netns;
let nft: Nftables;
let index: number;

beforeEach(async () => {
  ns = createNetns();
  nft = createNftables({ netnsFd: ns.fd });
  await using net = createRouteSocket({ netnsFd: ns.fd });
  ({ index } = await net.links.create({ name: 'v0', kind: { kind: 'veth' } }));
});
afterEach(() => {
  nft.close();
  ns.close();
});

const realNft = (...args: string[]): string =>
  execFileSync('nsenter', [`--net=${ns.path}`, 'nft', ...args], { encoding: 'utf8' });

const sets = (): SetSpec[] => [
  { name: 'ports', type: 'iif', elements: [String(index)] },
  { name: 'macs', type: 'iif . ether', elements: [`${index} . 02:00:00:00:00:01`] },
  { name: 'own4', type: 'iif . ether . ipv4', elements: [`${index} . 02:00:00:00:00:01 . 10.0.0.1`] },
  { name: 'own6', type: 'iif . ether . ipv6', elements: [`${index} . 02:00:00:00:00:01 . fd00::1`] },
  { name: 'seen', type: 'iif', elements: [], dynamic: { timeoutMs: 60_000, maxElements: 100 } },
];
const withRule = (...expressions: Expression[]): TableSpec => ({
  family: 'bridge',
  name: 'one',
  sets: sets(),
  chains: [{ name: 'c', base: { type: 'filter', hook: 'prerouting', priority: -300 }, rules: [{ expressions }] }],
});
const drop: Expression = { do: 'drop' };

describe('rules of frames, as the real nft reads them back', () => {
  test.each<[string, Expression[]]>([
    ['ether type arp drop', [{ match: 'payload', field: 'ether.type', op: '==', value: 0x0806 }, drop]],
    [
      'ether daddr & ff:ff:ff:ff:ff:f0 == 01:80:c2:00:00:00 drop',
      [{ match: 'payload', field: 'ether.daddr', op: '==', value: 0x0180_c200_0000, mask: 0xffff_ffff_fff0 }, drop],
    ],
    [
      '@ll,8,24 0x80c200 drop',
      [{ match: 'raw', field: { base: 'link', offsetBytes: 1, lengthBytes: 3 }, op: '==', value: 0x80_c200 }, drop],
    ],
    ['iif != @ports drop', [{ match: 'interface', fields: [], op: '!=', set: 'ports' }, drop]],
    ['iif . ether saddr @macs drop', [{ match: 'interface', fields: ['ether.saddr'], op: '==', set: 'macs' }, drop]],
    ['ip saddr != 10.0.0.1 drop', [{ match: 'payload', field: 'ip.saddr', op: '!=', value: '10.0.0.1' }, drop]],
    [
      'iif . ether saddr . ip saddr != @own4 drop',
      [{ match: 'interface', fields: ['ether.saddr', 'ip.saddr'], op: '!=', set: 'own4' }, drop],
    ],
    [
      'iif . ether saddr . ip6 saddr @own6 drop',
      [{ match: 'interface', fields: ['ether.saddr', 'ip6.saddr'], op: '==', set: 'own6' }, drop],
    ],
    [
      'iif . ether saddr . @nh,112,32 @own4 drop',
      [{ match: 'interface', fields: ['ether.saddr', 'arp.spa'], op: '==', set: 'own4' }, drop],
    ],
    ['icmpv6 type nd-neighbor-advert drop', [{ match: 'payload', field: 'icmpv6.type', op: '==', value: 136 }, drop]],
    ['update @seen { iif counter } drop', [{ do: 'count-interface', at: 'seen' }, drop]],
    [
      '@nh,0,48 != 0x108000604 drop',
      [
        { match: 'raw', field: { base: 'network', offsetBytes: 0, lengthBytes: 6 }, op: '!=', value: 0x0001_0800_0604 },
        drop,
      ],
    ],
  ])('%s', async (text, expressions) => {
    const table = withRule(...expressions);
    await nft.replaceTable(table);
    expect(realNft('list', 'chain', 'bridge', 'one', 'c').split('\n')[3]?.trim()).toBe(text);
    expect(await nft.drift(table)).toBeUndefined();
  });
});

describe('sets of what comes in by an interface', () => {
  test('are what the real nft shows', async () => {
    await nft.replaceTable(withRule(drop));
    const shown = (set: string): string => realNft('list', 'set', 'bridge', 'one', set).replaceAll(/\s+/g, ' ');
    expect(shown('ports')).toContain('type iface_index elements = { "v0" }');
    expect(shown('macs')).toContain('type iface_index . ether_addr elements = { "v0" . 02:00:00:00:00:01 }');
    expect(shown('own4')).toContain('elements = { "v0" . 02:00:00:00:00:01 . 10.0.0.1 }');
    expect(shown('own6')).toContain('elements = { "v0" . 02:00:00:00:00:01 . fd00::1 }');
    expect(shown('seen')).toContain('size 100 flags dynamic,timeout timeout 1m');
  });

  test('change by elements: adding one that is there and removing one that is not are fine', async () => {
    const table = withRule(drop);
    await nft.replaceTable(table);
    const one: SetSpec = {
      name: 'own4',
      type: 'iif . ether . ipv4',
      elements: [`${index} . 02:00:00:00:00:02 . 10.0.0.2`],
    };
    for (let times = 0; times < 2; times++) await nft.changeElements(table, { add: [one] });
    expect(await nft.drift(table)).toBe('set own4 has other elements');
    for (let times = 0; times < 2; times++) await nft.changeElements(table, { remove: [one] });
    expect(await nft.drift(table)).toBeUndefined();
  });

  test('change not at all when one of the elements cannot be had', async () => {
    const table = withRule(drop);
    await nft.replaceTable(table);
    const [ports] = table.sets!;
    const add = [
      { ...ports!, elements: ['77'] },
      { ...ports!, name: 'nowhere' },
    ];
    await expect(nft.changeElements(table, { add })).rejects.toMatchObject({ code: 'ENOENT' });
    expect(await nft.drift(table)).toBeUndefined();
  });

  test('that somebody changed are noticed, but not what rules add', async () => {
    const table = withRule({ do: 'count-interface', at: 'seen' });
    await nft.replaceTable(table);
    realNft('add', 'element', 'bridge', 'one', 'seen', '{ v0 }');
    expect(await nft.drift(table)).toBeUndefined();
    realNft('delete', 'element', 'bridge', 'one', 'macs', '{ v0 . 02:00:00:00:00:01 }');
    expect(await nft.drift(table)).toBe('set macs has other elements');
  });

  test.each([
    ['a part too few', 'iif . ether', '3'],
    ['a part too many', 'iif', '3 . 4'],
    ['a name', 'iif', 'eth0'],
    ['no MAC', 'iif . ether', '3 . 02:00'],
    ['the other family', 'iif . ether . ipv4', '3 . 02:00:00:00:00:01 . fd00::1'],
  ] as const)('are not written with %s', async (_, type, element) => {
    const sets: SetSpec[] = [{ name: 's', type, elements: [element] }];
    await expect(async () => nft.replaceTable({ ...withRule(drop), sets })).rejects.toThrow(RangeError);
  });
});
