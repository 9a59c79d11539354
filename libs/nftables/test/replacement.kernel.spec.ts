import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createNetns, type Netns } from '@unbounded/netlink';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  createNftables,
  type Expression,
  type Nftables,
  NftablesError,
  type SetSpec,
  type TableSpec,
} from '../src/index.ts';

/** What packets meet while a table is replaced. */

let ns: Netns;
let nft: Nftables;

beforeEach(() => {
  ns = createNetns();
  nft = createNftables({ netnsFd: ns.fd });
  within('ip', 'link', 'set', 'lo', 'up');
});
afterEach(() => {
  nft.close();
  ns.close();
});

const within = (...argv: string[]): string =>
  execFileSync('nsenter', [`--net=${ns.path}`, ...argv], { encoding: 'utf8' });

const MANY = 2000;
const ROUNDS = 20;

type Own = (round: number) => { readonly set: SetSpec; readonly match: Expression };
/** Both kinds of sets that the kernel shows late. */
const KINDS: Readonly<Record<'pairs' | 'addresses', Own>> = {
  pairs: (round) => ({
    set: {
      name: 'senders',
      type: 'ipv4 . ipv4',
      elements: [
        '127.0.0.1 . 127.0.0.0/8',
        ...Array.from({ length: MANY }, (_, n) => `10.${round}.${n >> 8}.${n & 255} . 100.64.0.0/16`),
      ],
    },
    match: { match: 'pair', fields: ['ip.saddr', 'ip.daddr'], op: '==', set: 'senders' },
  }),
  addresses: (round) => ({
    set: {
      name: 'senders',
      type: 'ipv4',
      elements: ['127.0.0.0/8', ...Array.from({ length: MANY }, (_, n) => `10.${round}.${n >> 8}.${n & 255}`)],
    },
    match: { match: 'set', field: 'ip.saddr', op: '==', set: 'senders' },
  }),
};

/** Takes packets of this host, and no others; `round` makes each table another one. */
const onlyOwn = (round: number, kind: keyof typeof KINDS = 'pairs'): TableSpec => ({
  family: 'inet',
  name: 'checked',
  sets: [KINDS[kind](round).set, { name: `of_round_${round}`, type: 'ipv4', elements: ['192.0.2.0/24'] }],
  counters: ['forged', `round_${round}`],
  chains: [
    {
      name: 'in',
      base: { type: 'filter', hook: 'input', priority: -150 },
      rules: [
        {
          comment: 'own',
          expressions: [KINDS[kind](round).match, { do: 'return' }],
        },
        { comment: `round ${round}`, expressions: [{ do: 'counter', name: 'forged' }, { do: 'drop' }] },
      ],
    },
  ],
});

const WATCH = [
  'add table inet watch',
  'add counter inet watch came; add counter inet watch passed',
  'add chain inet watch before { type filter hook prerouting priority -300; }',
  'add chain inet watch after { type filter hook input priority 300; }',
  'add rule inet watch before ip protocol icmp counter name came',
  'add rule inet watch after ip protocol icmp counter name passed',
].join('; ');

/** Of as many as come while something happens: those that came, and those that passed. */
const packetsDuring = async (act: () => Promise<void>): Promise<number[]> => {
  within('nft', WATCH);
  const ping = spawn('nsenter', [`--net=${ns.path}`, 'ping', '-f', '-q', '127.0.0.1'], { stdio: 'ignore' });
  const ended = once(ping, 'exit');
  await act();
  ping.kill('SIGINT');
  await ended;
  const counters = (await nft.readCounters('inet', 'watch')).toSorted((a, b) => a.name.localeCompare(b.name));
  return counters.map((counter) => counter.packets);
};

test.each(Object.keys(KINDS) as (keyof typeof KINDS)[])(
  'no packet that both tables take is dropped between them, although the kernel shows sets of %s late',
  async (kind) => {
    await nft.replaceTable(onlyOwn(0, kind));
    const [came = 0, passed] = await packetsDuring(async () => {
      for (let round = 1; round <= ROUNDS; round++) {
        await nft.replaceTable(onlyOwn(round, kind));
        expect(await nft.drift(onlyOwn(round, kind))).toBeUndefined();
      }
    });
    expect(came).toBeGreaterThan(1000);
    expect(passed).toBe(came);
  },
  60_000,
);

test('a table that somebody made dormant is another one, and at its hooks again once it is replaced', async () => {
  const noPings: TableSpec = {
    family: 'inet',
    name: 'quiet',
    chains: [
      {
        name: 'in',
        base: { type: 'filter', hook: 'input', priority: 0 },
        rules: [{ expressions: [{ match: 'meta', key: 'l4proto', op: '==', value: 1 }, { do: 'drop' }] }],
      },
    ],
  };
  const ping = (): string =>
    within('sh', '-c', 'ping -c1 -W1 127.0.0.1 >/dev/null && echo answered || echo silent').trim();
  await nft.replaceTable(noPings);
  expect(ping()).toBe('silent');
  within('nft', 'add table inet quiet { flags dormant; }');
  expect(ping()).toBe('answered');
  expect(await nft.drift(noPings)).toBe('table inet quiet is dormant');
  await nft.replaceTable(noPings);
  expect(ping()).toBe('silent');
  expect(await nft.drift(noPings)).toBeUndefined();
});

/** Takes a mark off and lets pass; who comes a second time has none. */
const onlyOnce = (round: number, sets: readonly SetSpec[]): TableSpec => ({
  family: 'inet',
  name: 'once',
  sets,
  chains: [
    {
      name: 'marks',
      base: { type: 'filter', hook: 'prerouting', priority: -160 },
      rules: [{ expressions: [{ set: 'mark', value: 1 }] }],
    },
    {
      name: 'takes',
      base: { type: 'filter', hook: 'input', priority: -150 },
      rules: [
        {
          comment: `round ${round}`,
          expressions: [
            { match: 'meta', key: 'mark', op: '==', value: 1 },
            { set: 'mark', value: 0 },
            { do: 'return' },
          ],
        },
        { expressions: [{ do: 'drop' }] },
      ],
    },
    // Work for the kernel: the longer the transaction, the more packets come meanwhile.
    ...Array.from({ length: 200 }, (_, n) => ({
      name: `chain_${n}`,
      rules: [{ expressions: [{ do: 'drop' } as const] }],
    })),
  ],
});

test.each([
  ['without sets', []],
  ['with sets that the kernel shows late', [{ name: 'some', type: 'ipv4', elements: ['192.0.2.0/24'] }]],
] satisfies [string, SetSpec[]][])(
  'each packet passes a chain at a hook once while a table is replaced: %s',
  async (_, sets) => {
    await nft.replaceTable(onlyOnce(0, sets));
    const [came = 0, passed] = await packetsDuring(async () => {
      for (let round = 1; round <= 3 * ROUNDS; round++) await nft.replaceTable(onlyOnce(round, sets));
    });
    expect(came).toBeGreaterThan(1000);
    expect(passed).toBe(came);
  },
  60_000,
);

test('a chain whose hook or priority is to be another is made anew', async () => {
  const at = (priority: number, hook: 'input' | 'output'): TableSpec => ({
    ...onlyOnce(0, []),
    chains: [{ name: 'moves', base: { type: 'filter', hook, priority }, rules: [] }],
  });
  for (const table of [at(0, 'input'), at(5, 'input'), at(5, 'output')]) {
    await nft.replaceTable(table);
    expect(await nft.drift(table)).toBeUndefined();
  }
});

test('what is replaced leaves nothing of the former table, whatever was put into it', async () => {
  await nft.replaceTable(onlyOwn(1));
  within('nft', 'add', 'chain', 'inet', 'checked', 'foreign');
  within('nft', 'add', 'rule', 'inet', 'checked', 'in', 'jump', 'foreign');
  within('nft', 'add', 'set', 'inet', 'checked', 'foreign_set', '{ type ipv4_addr; }');
  await nft.replaceTable(onlyOwn(2));
  expect(await nft.drift(onlyOwn(2))).toBeUndefined();
  const listing = within('nft', 'list', 'table', 'inet', 'checked');
  expect(listing).not.toMatch(/foreign|round_1|of_round_1|round 1/);
  expect(listing.match(/^\tset senders/gm)).toHaveLength(1);
});

test.each([
  ['a set without a name', ['ip saddr { 192.0.2.1, 192.0.2.9 } accept']],
  ['a map of verdicts without a name', ['tcp dport vmap { 80 : accept, 443 : drop }']],
  ['a chain without a name', ['ip saddr 192.0.2.1 jump { counter; accept; }']],
  ['all of these', ['tcp dport { 80, 443 } accept', 'tcp dport vmap { 80 : drop }', 'jump { drop; }']],
])('a rule of others with %s goes with the former table', async (_, rules) => {
  await nft.replaceTable(onlyOwn(1));
  for (const rule of rules) within('nft', 'insert', 'rule', 'inet', 'checked', 'in', rule);
  await expect(nft.replaceTable(onlyOwn(2))).resolves.toBeUndefined();
  expect(await nft.drift(onlyOwn(2))).toBeUndefined();
});

test('a map of verdicts that leads to a chain of the table goes with the former one', async () => {
  await nft.replaceTable(onlyOwn(1));
  within('nft', 'add', 'map', 'inet', 'checked', 'ways', '{ type inet_service : verdict; }');
  within('nft', 'add', 'chain', 'inet', 'checked', 'way');
  within('nft', 'add', 'element', 'inet', 'checked', 'ways', '{ 80 : jump way }');
  await nft.replaceTable(onlyOwn(2));
  expect(await nft.drift(onlyOwn(2))).toBeUndefined();
});

test('no change of elements is done at once', async () => {
  await nft.replaceTable(onlyOwn(1));
  await nft.changeElements({ family: 'inet', name: 'checked' }, {});
  expect(await nft.drift(onlyOwn(1))).toBeUndefined();
});

test('a table that the kernel refuses leaves the former one, and no set of its own', async () => {
  await nft.replaceTable(onlyOwn(1));
  const before = within('nft', 'list', 'table', 'inet', 'checked');
  const wrong = { ...onlyOwn(2), counters: [] }; // a rule names one
  await expect(nft.replaceTable(wrong)).rejects.toThrow(NftablesError);
  expect(within('nft', 'list', 'table', 'inet', 'checked')).toBe(before);
  await nft.deleteTable('inet', 'checked');
  await expect(nft.replaceTable(wrong)).rejects.toThrow(NftablesError);
  expect(await nft.hasTable('inet', 'checked')).toBe(false);
});
