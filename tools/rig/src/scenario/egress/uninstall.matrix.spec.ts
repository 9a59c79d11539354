import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cleanUpByChart, uninstallChart } from '../../apps/chart.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { layoutOf } from '../../layout/layout.ts';
import { checkout } from '../../machine/paths.ts';
import { down } from '../../substrate/down.ts';
import { addForeign, kernelOf, remainsOf } from './kernel-state.ts';
import { upWithRule } from './rule.ts';

/** The product is taken away as docs/operations.md says while a rule is in force: agents as pods, by the chart. */

const layout = layoutOf({ workers: 1, ip: 'dual', partner: true, agents: 'pods' });
const names = layout.nodes.map(({ name }) => name);

beforeAll(async () => {
  await upWithRule(layout);
  for (const node of names) addForeign(node);
}, 600_000);
afterAll(down, 60_000);

test(
  'a clean-up by the chart leaves nothing of egress on any node, and what others have',
  { timeout: 180_000 },
  async () => {
    const before = new Map(names.map((node) => [node, kernelOf(node)]));
    for (const [node, { tables }] of before)
      expect(tables, node).toContainEqual(expect.stringContaining('unbounded_egress'));
    await cleanUpByChart(layout);
    for (const [node, state] of before) expect(remainsOf(node, state), node).toEqual([]);
  },
);

test(
  'then nothing holds up the end of the programs, nor of the kinds with their objects',
  { timeout: 300_000 },
  async () => {
    await uninstallChart(layout);
    const protectedOnes = (await kubectl(layout, ['get', 'sites,gatewaypools', '-o', 'name'])).trim().split('\n');
    for (const name of protectedOnes)
      await kubectl(layout, ['patch', name, '--type=merge', '-p', '{"metadata":{"finalizers":null}}']);
    await kubectl(layout, ['delete', '-f', join(checkout, 'deploy/crds/'), '--timeout=60s']);
    expect(await kubectl(layout, ['get', 'crds', '-o', 'name'])).not.toContain('unbounded-cloud.io');
  },
);
