import { execFileSync } from 'node:child_process';

import { createNetns, type Netns } from '@unbounded/netlink';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { createNftables, type Expression, type Nftables, NftablesError, type TableSpec } from '../src/index.ts';

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

const masquerade: TableSpec = {
  family: 'inet',
  name: 'unbounded',
  sets: [
    { name: 'pods', type: 'ipv4', elements: ['100.64.0.0/16', '100.65.0.0/16', '224.0.0.0/3'] },
    { name: 'pods6', type: 'ipv6', elements: ['fd00::/8'] },
  ],
  chains: [
    {
      name: 'post',
      base: { type: 'nat', hook: 'postrouting', priority: 105 },
      rules: [
        {
          comment: 'local',
          expressions: [{ match: 'fib-type', address: 'daddr', op: '==', type: 'local' }, { do: 'return' }],
        },
        {
          comment: 'as the node',
          expressions: [
            { match: 'set', field: 'ip.saddr', op: '==', set: 'pods' },
            { match: 'set', field: 'ip.daddr', op: '!=', set: 'pods' },
            { do: 'counter' },
            { do: 'masquerade' },
          ],
        },
      ],
    },
  ],
};

const withRule = (...expressions: Expression[]): TableSpec => ({
  family: 'inet',
  name: 'one',
  sets: [
    { name: 'bad', type: 'ipv6', elements: ['2001:db8::/32'] },
    { name: 'own', type: 'ifname', elements: ['wg51820', 'vxlan0'] },
  ],
  counters: ['forged'],
  chains: [
    { name: 'c', base: { type: 'filter', hook: 'forward', priority: -150 }, rules: [{ expressions }] },
    { name: 'other', rules: [] },
  ],
});

describe('rules, as the real nft reads them back', () => {
  test.each<[string, Expression[]]>([
    ['iifname "eth0" accept', [{ match: 'meta', key: 'iifname', op: '==', value: 'eth0' }, { do: 'accept' }]],
    ['oifname != "wg*" drop', [{ match: 'meta', key: 'oifname', op: '!=', value: 'wg*' }, { do: 'drop' }]],
    [
      'meta mark & 0x00000f00 == 0x00000200 accept',
      [{ match: 'meta', key: 'mark', op: '==', value: 0x200, mask: 0xf00 }, { do: 'accept' }],
    ],
    ['meta mark set meta mark & 0xfffff2ff | 0x00000200', [{ set: 'mark', value: 0x200, mask: 0xf00 }]],
    ['meta mark set 0x00000007', [{ set: 'mark', value: 7 }]],
    ['meta mark set ct mark', [{ copy: 'ct-to-mark' }]],
    ['ct mark set meta mark', [{ copy: 'mark-to-ct' }]],
    [
      'meta nfproto ipv4 ct reply ip daddr 192.0.2.1 return',
      [{ match: 'ct-address', direction: 'reply', address: 'daddr', op: '==', value: '192.0.2.1' }, { do: 'return' }],
    ],
    [
      'meta nfproto ipv6 ct original ip6 saddr != 2001:db8::1 drop',
      [
        { match: 'ct-address', direction: 'original', address: 'saddr', op: '!=', value: '2001:db8::1' },
        { do: 'drop' },
      ],
    ],
    [
      'meta nfproto ipv6 ct reply ip6 daddr @bad drop',
      [
        { match: 'ct-address-set', direction: 'reply', family: 'ip6', address: 'daddr', op: '==', set: 'bad' },
        { do: 'drop' },
      ],
    ],
    [
      'ct direction reply ct status dnat return',
      [{ match: 'ct-direction', op: '==', value: 'reply' }, { match: 'ct-translated', of: 'daddr' }, { do: 'return' }],
    ],
    ['ct status snat drop', [{ match: 'ct-translated', of: 'saddr' }, { do: 'drop' }]],
    ['limit rate 50/second burst 20 packets drop', [{ match: 'rate-below', perSecond: 50, burst: 20 }, { do: 'drop' }]],
    ['ct state invalid drop', [{ match: 'ct-state', states: ['invalid'] }, { do: 'drop' }]],
    [
      'ct state established,related accept',
      [{ match: 'ct-state', states: ['established', 'related'] }, { do: 'accept' }],
    ],
    [
      'ip saddr 192.0.2.0/25 drop',
      [{ match: 'payload', field: 'ip.saddr', op: '==', value: '192.0.2.0/25' }, { do: 'drop' }],
    ],
    [
      'ip daddr != 192.0.2.1 drop',
      [{ match: 'payload', field: 'ip.daddr', op: '!=', value: '192.0.2.1' }, { do: 'drop' }],
    ],
    ['ip6 saddr != @bad drop', [{ match: 'set', field: 'ip6.saddr', op: '!=', set: 'bad' }, { do: 'drop' }]],
    [
      'udp dport 51820 accept',
      [
        { match: 'meta', key: 'l4proto', op: '==', value: 17 },
        { match: 'payload', field: 'th.dport', op: '==', value: 51820 },
        { do: 'accept' },
      ],
    ],
    [
      'tcp flags syn / syn,rst tcp option maxseg size set rt mtu',
      [
        { match: 'payload', field: 'tcp.flags', op: '==', value: 2, mask: 6 },
        { set: 'tcp-mss', to: 'route-mtu' },
      ],
    ],
    ['tcp option maxseg size set 1360', [{ set: 'tcp-mss', to: 1360 }]],
    ['ip daddr set 192.0.2.1', [{ set: 'ip.daddr', to: '192.0.2.1' }]],
    ['ip6 daddr set 2001:db8::1', [{ set: 'ip6.daddr', to: '2001:db8::1' }]],
    ['meta nftrace set 1', [{ set: 'nftrace' }]],
    ['counter packets 0 bytes 0 jump other', [{ do: 'counter' }, { do: 'jump', chain: 'other' }]],
    [
      'fib saddr type != unicast drop',
      [{ match: 'fib-type', address: 'saddr', op: '!=', type: 'unicast' }, { do: 'drop' }],
    ],
    [
      'fib daddr . iif type local drop',
      [{ match: 'fib-type', address: 'daddr', atDevice: true, op: '==', type: 'local' }, { do: 'drop' }],
    ],
    ['fib saddr oifname @own drop', [{ match: 'route-device', set: 'own' }, { do: 'drop' }]],
    ['fib saddr . iif oif missing drop', [{ match: 'route-back', found: false }, { do: 'drop' }]],
    [
      '@th,96,24 0x1 drop',
      [
        { match: 'raw', field: { base: 'transport', offsetBytes: 12, lengthBytes: 3 }, op: '==', value: 1 },
        { do: 'drop' },
      ],
    ],
    [
      '@th,64,8 & 0xf == 0x5 drop',
      [
        {
          match: 'raw',
          field: { base: 'transport', offsetBytes: 8, lengthBytes: 1 },
          op: '==',
          value: 5,
          mask: 0x0f,
        },
        { do: 'drop' },
      ],
    ],
    [
      '@th,256,128 @bad drop',
      [
        { match: 'set', field: { base: 'transport', offsetBytes: 32, lengthBytes: 16 }, op: '==', set: 'bad' },
        { do: 'drop' },
      ],
    ],
    ['iifname @own drop', [{ match: 'device', key: 'iifname', op: '==', set: 'own' }, { do: 'drop' }]],
    ['oifname != @own drop', [{ match: 'device', key: 'oifname', op: '!=', set: 'own' }, { do: 'drop' }]],
    ['counter name "forged" drop', [{ do: 'counter', name: 'forged' }, { do: 'drop' }]],
    ['fib saddr . iif oif exists drop', [{ match: 'route-back', found: true }, { do: 'drop' }]],
  ])('%s', async (text, expressions) => {
    const table = withRule(...expressions);
    await nft.replaceTable(table);
    expect(realNft('list', 'chain', 'inet', 'one', 'c').split('\n')[3]?.trim()).toBe(text);
    expect(await nft.drift(table)).toBeUndefined();
  });

  test.each<[string, Expression[], 'prerouting' | 'postrouting']>([
    [
      'oifname "eth0" masquerade fully-random',
      [
        { match: 'meta', key: 'oifname', op: '==', value: 'eth0' },
        { do: 'masquerade', fullyRandom: true },
      ],
      'postrouting',
    ],
    [
      'ip saddr 10.0.0.1 snat ip to 192.0.2.9',
      [
        { match: 'payload', field: 'ip.saddr', op: '==', value: '10.0.0.1' },
        { do: 'snat', to: '192.0.2.9' },
      ],
      'postrouting',
    ],
    ['meta nfproto ipv6 snat ip6 to 2001:db8::9', [{ do: 'snat', to: '2001:db8::9' }], 'postrouting'],
    ['snat ip to ip saddr', [{ do: 'snat', to: { field: 'ip.saddr' } }], 'postrouting'],
    ['snat ip6 to ip6 saddr', [{ do: 'snat', to: { field: 'ip6.saddr' } }], 'postrouting'],
  ])('nat: %s', async (text, expressions, hook) => {
    const table: TableSpec = {
      family: 'inet',
      name: 'nat',
      chains: [{ name: 'c', base: { type: 'nat', hook, priority: 100 }, rules: [{ expressions }] }],
    };
    await nft.replaceTable(table);
    expect(realNft('list', 'chain', 'inet', 'nat', 'c').split('\n')[3]?.trim()).toBe(text);
    expect(await nft.matches(table)).toBe(true);
  });
});

describe('pairs of an address and a prefix', () => {
  const ADDRESS = { ipv4: '192.0.2.1', ipv6: '2001:db8::1' } as const;
  const BLOCKS = {
    ipv4: ['10.1.0.0/16', '10.1.2.0/24', '10.2.0.0/16', '10.5.0.0/24', '0.0.0.0/8', '224.0.0.0/3'],
    ipv6: ['fd00:2::/32', 'fd00:2:1::/48', 'fd00:3::/32', 'fd00:8::1', 'ff00::/8'],
  } as const;
  const SHOWN = {
    ipv4: ['0.0.0.0/8', '10.1.0.0-10.2.255.255', '10.5.0.0/24', '224.0.0.0/3'],
    ipv6: ['fd00:2::/31', 'fd00:8::1', 'ff00::/8'],
  } as const;
  const fieldOf = { ipv4: 'ip.saddr', ipv6: 'ip6.saddr' } as const;
  const tableOf = (first: 'ipv4' | 'ipv6', second: 'ipv4' | 'ipv6'): TableSpec => ({
    family: 'inet',
    name: 'pairs',
    sets: [
      {
        name: 'senders',
        type: `${first} . ${second}`,
        elements: BLOCKS[second].map((block) => `${ADDRESS[first]} . ${block}`),
      },
    ],
    chains: [
      {
        name: 'c',
        base: { type: 'filter', hook: 'input', priority: 0 },
        rules: [
          {
            expressions: [
              {
                match: 'pair',
                fields: [
                  fieldOf[first],
                  { base: 'transport', offsetBytes: 42, lengthBytes: second === 'ipv4' ? 4 : 16 },
                ],
                op: '!=',
                set: 'senders',
              },
              { do: 'drop' },
            ],
          },
        ],
      },
    ],
  });

  describe.each([
    ['ipv4', 'ipv4', 'ip saddr . @th,336,32 != @senders drop'],
    ['ipv4', 'ipv6', 'ip saddr . @th,336,128 != @senders drop'],
    ['ipv6', 'ipv4', 'ip6 saddr . @th,336,32 != @senders drop'],
    ['ipv6', 'ipv6', 'ip6 saddr . @th,336,128 != @senders drop'],
  ] as const)('%s . %s', (first, second, rule) => {
    const table = tableOf(first, second);

    test('are what the real nft shows, merged', async () => {
      await nft.replaceTable(table);
      const listing = realNft('list', 'table', 'inet', 'pairs').replaceAll(/\s+/g, ' ');
      expect(listing).toContain(`type ${first}_addr . ${second}_addr flags interval`);
      expect(/elements = \{ (.*?) \}/.exec(listing)?.[1]?.split(', ').sort()).toEqual(
        SHOWN[second].map((block) => `${ADDRESS[first]} . ${block}`).sort(),
      );
      expect(listing).toContain(rule);
      expect(await nft.drift(table)).toBeUndefined();
    });

    test('that somebody changed are noticed, and one that nft added itself is read', async () => {
      await nft.replaceTable(table);
      const more = `${ADDRESS[first]} . ${second === 'ipv4' ? '10.9.0.1' : 'fd00:9::1'}`;
      realNft('add', 'element', 'inet', 'pairs', 'senders', `{ ${more} }`);
      expect(await nft.drift(table)).toBe('set senders has other elements');
      const [set] = table.sets!;
      expect(await nft.drift({ ...table, sets: [{ ...set!, elements: [...set!.elements, more] }] })).toBeUndefined();
    });
  });

  test('are another set than plain addresses, or other pairs', async () => {
    const table = tableOf('ipv4', 'ipv6');
    await nft.replaceTable(table);
    const [set] = table.sets!;
    for (const type of ['ipv6 . ipv4', 'ipv6'] as const)
      expect(await nft.drift({ ...table, sets: [{ ...set!, type, elements: [] }] })).toBe(
        'set senders is of another type',
      );
  });

  test('of 5,000 peers are written in one transaction, and replaced', async () => {
    const peers = Array.from({ length: 5000 }, (_, index) => `10.${index >> 8}.${index & 255}.1`);
    const table = tableOf('ipv4', 'ipv4');
    const set = { ...table.sets![0]!, elements: peers.map((peer) => `${peer} . ${peer.replace('10.', '100.')}/32`) };
    await nft.replaceTable({ ...table, sets: [set] });
    expect(await nft.matches({ ...table, sets: [set] })).toBe(true);
    await nft.replaceSet(table, table.sets![0]!);
    expect(await nft.matches(table)).toBe(true);
  });
});

describe('a table', () => {
  test('is written whole, and prefixes that touch become one interval', async () => {
    expect(await nft.hasTable(masquerade.family, masquerade.name)).toBe(false);
    await nft.replaceTable(masquerade);
    expect(await nft.hasTable(masquerade.family, masquerade.name)).toBe(true);
    const listing = realNft('list', 'table', 'inet', 'unbounded');
    expect(listing).toContain('100.64.0.0/15, 224.0.0.0/3');
    expect(listing).toContain('masquerade comment "as the node"');
    expect(await nft.matches(masquerade)).toBe(true);
  });

  test('is replaced at once, and writing it again changes nothing', async () => {
    await nft.replaceTable(masquerade);
    const before = realNft('list', 'ruleset');
    await nft.replaceTable(masquerade);
    // Sets that the kernel shows late come beside those in use.
    expect(realNft('list', 'ruleset').replaceAll(/\bpods(6?)_b\b/g, 'pods$1')).toBe(before);
    await nft.replaceTable(masquerade);
    expect(realNft('list', 'ruleset')).toBe(before);
  });

  test('that is refused leaves nothing behind, and the old one as it was', async () => {
    await nft.replaceTable(masquerade);
    const before = realNft('list', 'ruleset');
    const chains = [
      ...masquerade.chains,
      { name: 'bad', rules: [{ comment: 'lost', expressions: [{ do: 'jump', chain: 'nowhere' } as const] }] },
    ];
    const refused = nft.replaceTable({ ...masquerade, chains });
    await expect(refused).rejects.toBeInstanceOf(NftablesError);
    await expect(refused).rejects.toMatchObject({
      code: 'ENOENT',
      message: expect.stringContaining('add rule to unbounded bad ("lost")'),
    });
    expect(realNft('list', 'ruleset')).toBe(before);
  });

  test.each([
    [
      'an element more',
      ['add', 'element', 'inet', 'unbounded', 'pods6', '{ fe80::/10 }'],
      'set pods6 has other elements',
    ],
    ['a rule more', ['add', 'rule', 'inet', 'unbounded', 'post', 'drop'], 'chain post has 3 rules instead of 2'],
    ['a rule less', ['flush', 'chain', 'inet', 'unbounded', 'post'], 'chain post has 0 rules instead of 2'],
    ['a chain more', ['add', 'chain', 'inet', 'unbounded', 'x'], 'table unbounded has chains that nobody wants'],
    ['no table', ['delete', 'table', 'inet', 'unbounded'], 'table inet unbounded is missing'],
  ])('that somebody changed is noticed: %s', async (_, command, drift) => {
    await nft.replaceTable(masquerade);
    realNft(...command);
    expect(await nft.drift(masquerade)).toBe(drift);
  });

  test('of others stays as it is', async () => {
    realNft('add', 'table', 'inet', 'foreign');
    realNft('add', 'chain', 'inet', 'foreign', 'c');
    await nft.replaceTable(masquerade);
    expect(await nft.deleteTable('inet', 'unbounded')).toBe(true);
    expect(await nft.deleteTable('inet', 'unbounded')).toBe(false);
    expect(realNft('list', 'tables').trim()).toBe('table inet foreign');
  });

  test('holds 20,000 prefixes, written in one transaction', async () => {
    const elements = Array.from({ length: 20_000 }, (_, index) => `10.${index >> 8}.${index & 255}.0/25`);
    const [pods, pods6] = masquerade.sets ?? [];
    if (!pods || !pods6) throw new Error('the sets are gone');
    const table = { ...masquerade, sets: [{ ...pods, elements }, pods6] };
    await nft.replaceTable(table);
    expect(await nft.matches(table)).toBe(true);
    await nft.replaceSet(table, { ...pods, elements: ['192.0.2.0/24'] });
    expect(realNft('list', 'set', 'inet', 'unbounded', 'pods')).toContain('elements = { 192.0.2.0/24 }');
  });
});

describe('named counters', () => {
  const counting: TableSpec = {
    family: 'inet',
    name: 'unbounded',
    counters: ['pings', 'others'],
    chains: [
      {
        name: 'out',
        base: { type: 'filter', hook: 'output', priority: 0 },
        rules: [
          {
            expressions: [
              { match: 'meta', key: 'l4proto', op: '==', value: 1 },
              { do: 'counter', name: 'pings' },
            ],
          },
        ],
      },
    ],
  };

  test('tell how many packets came by', async () => {
    await nft.replaceTable(counting);
    execFileSync('nsenter', [`--net=${ns.path}`, 'ip', 'link', 'set', 'lo', 'up']);
    execFileSync('nsenter', [`--net=${ns.path}`, 'ping', '-c1', '-s100', '127.0.0.1']);
    const counters = new Map((await nft.readCounters('inet', 'unbounded')).map((counter) => [counter.name, counter]));
    expect(counters.get('pings')).toEqual({ name: 'pings', packets: 2, bytes: 256 }); // there and back
    expect(counters.get('others')).toEqual({ name: 'others', packets: 0, bytes: 0 });
    expect(await nft.drift(counting)).toBeUndefined();
  });

  test('that are missing, or more, are noticed', async () => {
    await nft.replaceTable(counting);
    realNft('delete', 'counter', 'inet', 'unbounded', 'others');
    expect(await nft.drift(counting)).toContain('counters [pings]');
    await nft.replaceTable(counting);
    realNft('add', 'counter', 'inet', 'unbounded', 'more');
    expect(await nft.drift(counting)).toContain('more');
  });

  test('there are none where there is no table', async () => {
    expect(await nft.readCounters('inet', 'unbounded')).toEqual([]);
  });
});

describe('changes by others', () => {
  test.each([
    ['the ruleset is flushed', ['flush', 'ruleset']],
    ['the table is deleted', ['delete', 'table', 'inet', 'unbounded']],
    ['a chain is flushed', ['flush', 'chain', 'inet', 'unbounded', 'post']],
    ['an element is deleted', ['delete', 'element', 'inet', 'unbounded', 'pods6', '{ fd00::/8 }']],
    ['a rule is added', ['add', 'rule', 'inet', 'unbounded', 'post', 'drop']],
  ])('are heard when they concern the table: %s', async (_, command) => {
    await nft.replaceTable(masquerade);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    using _monitor = nft.monitor('inet', 'unbounded', { onChange: resolve, onError: reject });
    realNft(...command);
    await expect(promise).resolves.toBeUndefined();
  });
});
