import { afterEach, expect, test } from 'vitest';
import { down } from '../substrate/down.ts';
import { layoutOf } from '../layout/layout.ts';
import type { LabOptions } from '../layout/options.ts';
import { up } from '../substrate/up.ts';
import { verify } from '../cli/verify.ts';

/** Every way in which sites can be joined, and both families: a lab each, in which everything reaches everything. */

afterEach(down, 60_000);

test.each<[string, Partial<LabOptions>]>([
  ['two gateways in each of two sites', { gateways: 2, workers: 1 }],
  ['three sites in a chain, with transit through the middle', { sites: 3, workers: 1, topology: 'chain' }],
  ['a mesh of all nodes over routed LANs, without gateways', { gateways: 0, topology: 'mesh' }],
  ['Internal pools, whose gateways have no external address', { workers: 1, topology: 'internal' }],
  ['gateways behind NAT, which meet at a relay', { gateways: 2, workers: 1, topology: 'nat', blockUdp: 'none' }],
  ['gateways behind 1:1 NAT without ExternalIP, by annotation', { workers: 1, topology: 'mapped' }],
  ['both families', { workers: 1, ip: 'dual' }],
  ['IPv6 alone', { workers: 1, ip: 'ipv6' }],
  ['kernel routes and next-hop groups instead of eBPF', { gateways: 2, workers: 1, dataplane: 'netlink' }],
  ['the same with both families', { workers: 1, ip: 'dual', dataplane: 'netlink' }],
])('%s', { timeout: 300_000 }, async (_, options) => {
  await down();
  const layout = layoutOf(options);
  await up(layout);
  expect(await verify(layout)).toBe(true);
});
