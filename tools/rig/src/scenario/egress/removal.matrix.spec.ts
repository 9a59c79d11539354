import { DEVICES, EGRESS_ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NODE_APPS, stopAgent } from '../../apps/agents.ts';
import { PARTNER } from '../../features/partner/layout.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { layoutOf } from '../../layout/layout.ts';
import { appBundle, nodeJs } from '../../machine/paths.ts';
import { onNode } from '../../node/node.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { timeUntil } from '../scenario.ts';
import { applyRule, RULE } from './rule.ts';

/** What is left in the kernel when rules, pools or the product go, and that what others have there stays. */

const layout = layoutOf({ workers: 1, ip: 'dual', partner: true });

beforeAll(async () => {
  await down();
  await up(layout);
  for (const { name } of layout.nodes) addForeign(name);
}, 400_000);
afterAll(down, 60_000);

/** Rules, tables, marks and addresses like ours, of somebody else. */
const FOREIGN = [
  'nft add table inet mine',
  "nft 'add chain inet mine c { type filter hook prerouting priority -86; }'",
  'nft add rule inet mine c meta mark 0x10 counter accept',
  'ip rule add priority 30000 fwmark 0x10/0xf0 lookup 4711',
  'ip -6 rule add priority 30000 fwmark 0x10/0xf0 lookup 4711',
  'ip route add 192.0.2.0/24 dev lo table 4711',
  'ip address add 192.0.2.9/32 dev lo preferred_lft 0',
];
const addForeign = (node: string): void => {
  for (const line of FOREIGN) onNode(node, 'sh', '-c', line);
};

const LOOKS: Readonly<Record<string, string>> = {
  tables: 'nft list tables',
  foreign: "nft list table inet mine | sed 's/packets [0-9]* bytes [0-9]*//'",
  rules: 'ip rule; ip -6 rule',
  routes: "ip route show table all; ip -6 route show table all | sed 's/ expires [0-9]*sec//'",
  addresses: 'ip -br address',
  settings: 'sysctl -a 2>/dev/null | grep -E "^net\\.ipv[46]\\.(conf\\.(all|default|eth0|eth1)\\.|ip_forward)"',
};

/** Of every node, in no order that the kernel has chosen. */
const kernelOf = (node: string): Record<string, string[]> =>
  Object.fromEntries(
    Object.entries(LOOKS).map(([what, command]) => [what, onNode(node, 'sh', '-c', command).split('\n').sort()]),
  );
const kernels = (): Record<string, Record<string, string[]>> =>
  Object.fromEntries(layout.nodes.map(({ name }) => [name, kernelOf(name)]));

/** Without rules it is a pass or two until nothing is left. */
const GONE_MS = 30_000;
const areGone = (): boolean =>
  layout.nodes.every(({ name }) => !onNode(name, 'nft', 'list', 'tables').includes('unbounded_egress'));

test('without the rule and its pool every node is as it was', { timeout: 180_000 }, async () => {
  const before = kernels();
  const { owner } = await applyRule(layout);
  expect(kernelOf(owner)['addresses']).not.toEqual(before[owner]!['addresses']);
  for (const { name } of layout.nodes) expect(onNode(name, 'nft', 'list', 'tables')).toContain('unbounded_egress');
  await kubectl(layout, ['delete', 'staticegressip', RULE.name]);
  await kubectl(layout, ['delete', 'egressippool', PARTNER]);
  await timeUntil('egress is gone from every node', areGone, GONE_MS);
  expect(kernels()).toEqual(before);
  await up(layout); // makes the pool again
});

test('the product goes from a node with its egress, and leaves what others have', { timeout: 180_000 }, async () => {
  const { owner } = await applyRule(layout);
  for (const node of [owner, 's2-w1']) {
    const { foreign } = kernelOf(node);
    for (const app of NODE_APPS.toReversed()) await stopAgent(node, app);
    onNode(node, nodeJs, appBundle('node-dataplane'), 'cleanup');
    const left = kernelOf(node);
    expect(left['tables']!.filter((table) => table.includes('unbounded'))).toEqual([]);
    for (const what of ['rules', 'routes'] as const)
      expect(left[what]!.filter((line) => line.includes(`proto ${EGRESS_ROUTE_PROTOCOL}`))).toEqual([]);
    expect(left['addresses']!.join('\n')).not.toMatch(
      new RegExp(`${DEVICES.egress}|203\\.0\\.113\\.20[0-7]|:203::20[0-7]`),
    );
    expect(left['foreign']).toEqual(foreign);
    expect(left['rules']!.filter((line) => line.includes('4711'))).toHaveLength(2);
    expect(left['addresses']!.join('\n')).toContain('192.0.2.9/32');
  }
});
