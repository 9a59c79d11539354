import { afterEach, expect, test } from 'vitest';
import { down } from '../substrate/down.ts';
import type { LabNode } from '../layout/layout.ts';
import { twoSites } from './scenario.ts';
import { up } from '../substrate/up.ts';
import { verify } from '../cli/verify.ts';
import { onNode } from '../node/node.ts';

/** The same network with each protocol inside the sites (Auto, which becomes VXLAN here, is network.full.lab.spec.ts). */

afterEach(down, 60_000);

const deviceTo = (node: LabNode, block: string): string => onNode(node.name, 'ip', 'route', 'show', block);

test('WireGuard inside the sites: everything reaches everything', { timeout: 300_000 }, async () => {
  await down();
  const layout = twoSites('WireGuard');
  await up(layout);
  expect(await verify(layout)).toBe(true);
  const links = onNode('s1-w1', 'ip', '-br', 'link');
  expect(links).toMatch(/^wg51820/m);
  expect(links).not.toContain('vxlan0');
});

test('plain routing inside the sites: everything reaches everything', { timeout: 300_000 }, async () => {
  await down();
  const layout = twoSites('None');
  await up(layout);
  expect(await verify(layout)).toBe(true);
  const worker = layout.nodes.find(({ name }) => name === 's1-w1')!;
  expect(deviceTo(worker, '100.66.0.0/16')).toContain('via 10.1.0.21 dev eth0 proto 117');
  expect(onNode('s1-w1', 'ip', '-br', 'link')).not.toMatch(/^(vxlan0|wg)/m);
});
