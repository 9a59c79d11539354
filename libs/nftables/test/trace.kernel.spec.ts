import { execFileSync } from 'node:child_process';
import { createNetns, type Netns } from '@unbounded/netlink';
import { until } from '@unbounded/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createNftables, type Nftables, type TableSpec, type TracedDrop } from '../src/index.ts';

/** Packets of a node to itself, which tables of others drop on their way in. */

const TRACING: TableSpec = {
  family: 'inet',
  name: 'tracing',
  chains: [
    {
      name: 'pre',
      base: { type: 'filter', hook: 'prerouting', priority: -310 },
      rules: [
        {
          expressions: [{ match: 'payload', field: 'ip.daddr', op: '==', value: '127.0.0.7' }, { set: 'nftrace' }],
        },
      ],
    },
  ],
};

let ns: Netns;
let nft: Nftables;
let drops: TracedDrop[];
const inside = (...argv: string[]): string =>
  execFileSync('nsenter', [`--net=${ns.path}`, ...argv], { encoding: 'utf8' });
const knock = (address: string): void => inside('sh', '-c', `ping -c 1 -W 0.1 ${address} >/dev/null || true`) as never;

beforeEach(async () => {
  ns = createNetns();
  inside('ip', 'link', 'set', 'lo', 'up');
  nft = createNftables({ netnsFd: ns.fd });
  drops = [];
  await nft.replaceTable(TRACING);
});
afterEach(() => {
  nft.close();
  ns.close();
});

test('who drops a traced packet is told: a rule with its handle and comment, and a policy', async () => {
  using _monitor = nft.traceDrops(TRACING, (drop) => void drops.push(drop));
  inside('nft', 'add table ip admin; add chain ip admin in { type filter hook input priority 5; }');
  inside('nft', 'add rule ip admin in ip daddr 127.0.0.7 counter reject comment "no way"');
  knock('127.0.0.7');
  await until('a drop is told', () => drops.length > 0);
  const [drop] = drops;
  expect(drop).toMatchObject({ family: 'ip', table: 'admin', chain: 'in' });
  expect(inside('nft', '--handle', 'list', 'chain', 'ip', 'admin', 'in')).toContain(`# handle ${drop!.handle}\n`);
  expect(await nft.ruleComment(drop as Required<TracedDrop>)).toBe('no way');
  expect(await nft.ruleComment({ ...(drop as Required<TracedDrop>), handle: 999 })).toBeUndefined();
  inside('nft', 'flush chain ip admin in; add chain ip admin in { policy drop; }');
  drops.length = 0;
  knock('127.0.0.7');
  await until('a drop is told', () => drops.length > 0);
  expect(drops[0]).toEqual({ family: 'ip', table: 'admin', chain: 'in' });
});

test('what is not traced, or traced by somebody else, or not dropped, is not told', async () => {
  using _monitor = nft.traceDrops(TRACING, (drop) => void drops.push(drop));
  inside('nft', 'add table ip admin; add chain ip admin pre { type filter hook prerouting priority -400; }');
  inside('nft', 'add rule ip admin pre ip daddr 127.0.0.8 meta nftrace set 1');
  inside('nft', 'add chain ip admin in { type filter hook input priority 5; }');
  inside('nft', 'add rule ip admin in ip daddr { 127.0.0.8, 127.0.0.9 } drop');
  for (const address of ['127.0.0.7', '127.0.0.8', '127.0.0.9']) knock(address);
  inside('nft', 'add rule ip admin in ip daddr 127.0.0.7 drop');
  knock('127.0.0.7');
  await until('the drop that counts is told', () => drops.length > 0);
  expect(new Set(drops.map(({ table, chain }) => `${table} ${chain}`))).toEqual(new Set(['admin in']));
  const handles = new Set(drops.map(({ handle }) => handle));
  expect(handles.size).toBe(1);
});
