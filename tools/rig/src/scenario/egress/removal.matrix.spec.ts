import { isDeepStrictEqual } from 'node:util';
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
import { addForeign, kernelOf, remainsOf } from './kernel-state.ts';
import { applyRule, RULE } from './rule.ts';

/** What is left in the kernel when rules, pools or the product go, and that what others have there stays. */

const layout = layoutOf({ workers: 1, ip: 'dual', partner: true });

beforeAll(async () => {
  await down();
  await up(layout);
  for (const { name } of layout.nodes) addForeign(name);
}, 400_000);
afterAll(down, 60_000);

const kernels = (): Record<string, Record<string, string[]>> =>
  Object.fromEntries(layout.nodes.map(({ name }) => [name, kernelOf(name)]));

/** Without rules it is a pass or two until nothing is left. */
const GONE_MS = 30_000;
const haveTables = (): boolean =>
  layout.nodes.every(({ name }) => onNode(name, 'nft', 'list', 'tables').includes('unbounded_egress'));

test('without the rule and its pool every node is as it was', { timeout: 180_000 }, async () => {
  const before = kernels();
  const { owner } = await applyRule(layout);
  expect(kernelOf(owner)['addresses']).not.toEqual(before[owner]!['addresses']);
  await timeUntil('every node has its table', haveTables, GONE_MS); // the owner is waited for alone
  await kubectl(layout, ['delete', 'staticegressip', RULE.name]);
  await kubectl(layout, ['delete', 'egressippool', PARTNER]);
  await timeUntil('every node is as it was', () => isDeepStrictEqual(kernels(), before), GONE_MS).catch(
    () => undefined,
  );
  expect(kernels()).toEqual(before);
  await up(layout); // makes the pool again
});

test('the product goes from a node with its egress, and leaves what others have', { timeout: 180_000 }, async () => {
  const { owner } = await applyRule(layout);
  for (const node of [owner, 's2-w1']) {
    const before = kernelOf(node);
    for (const app of NODE_APPS.toReversed()) await stopAgent(node, app);
    onNode(node, nodeJs, appBundle('node-dataplane'), 'cleanup');
    expect(remainsOf(node, before), node).toEqual([]);
  }
});
