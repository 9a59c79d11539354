import { afterEach, expect, test } from 'vitest';
import { verify } from '../../cli/verify.ts';
import { layoutOf } from '../../layout/layout.ts';
import type { LabOptions } from '../../layout/options.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';

/** A Network over both sites by every kind of link: each test pod reaches each other one by it, and all else works as without. */

afterEach(down, 60_000);

test.each<[string, Partial<LabOptions>]>([
  ['both families, eBPF', { ip: 'dual' }],
  ['IPv4 alone, kernel routes', { ip: 'ipv4', dataplane: 'netlink' }],
  ['IPv6 alone, WireGuard everywhere, our programs as pods', { ip: 'ipv6', protocol: 'WireGuard', agents: 'pods' }],
  ['VXLAN, kernel routes, our programs as pods', { protocol: 'VXLAN', dataplane: 'netlink', agents: 'pods' }],
  ['without UDP between the sites, by the relay', { blockUdp: 'all' }],
  ['a mesh of all nodes, without gateways', { gateways: 0, topology: 'mesh' }],
])('%s', { timeout: 300_000 }, async (_, options) => {
  await down();
  const layout = layoutOf({ workers: 1, ...options, lan: true });
  await up(layout);
  expect(await verify(layout)).toBe(true);
});
