import { expect, test } from 'vitest';
import { layoutOf } from '../../layout/layout.ts';
import { blockUdpFrom, bordersOf } from './relay.ts';
import { FEATURES } from '../features.ts';
import { hasRelay, relayEndpoint } from '../../apps/relay-place.ts';

test('every site has a border: its router, and the port of each gateway that stands on the WAN itself', () => {
  const borders = bordersOf(layoutOf({ blockUdp: 'all', sites: 3, gateways: 2 }));
  expect(borders.map(({ namespace, family }) => `${namespace} ${family}`)).toEqual([
    'ub-s1-router inet',
    'ub-s2-router inet',
    'ub-s3-router inet',
    'ub-wan bridge',
  ]);
  // Gateways of sites 1 and 3; those of site 2 are behind its router.
  expect(borders.at(-1)?.table.match(/iifname \{ (p\d+, ){3}p\d+ \}/)).not.toBeNull();
});

test('a LAN is no border', () => {
  for (const { table } of bordersOf(layoutOf({ blockUdp: 'all' }))) expect(table).not.toContain('lan0');
});

test('a border that drops UDP lets through the DNS of gateways with names, and nothing else', () => {
  const accepted = (topology: 'mapped' | 'pools') =>
    bordersOf(layoutOf({ topology, blockUdp: 'all' }))[0]!.table.match(/.*accept$/gm) ?? [];
  expect(accepted('mapped').map((rule) => rule.trim())).toEqual([
    'ip daddr 203.0.113.250 udp dport 53 accept',
    'ip saddr 203.0.113.250 udp sport 53 accept',
  ]);
  expect(accepted('pools')).toEqual([]);
});

test.each([[[]], [['some']], [['all', 'none']]])('block-udp %j says what would be right', (words) => {
  expect(() => blockUdpFrom(words)).toThrow(`tools/lab block-udp ${words.join(' ')}: must be one of all, none`);
});

test('a lab with --block-udp has a relay outside, and a Mesh that names it; others have neither', () => {
  const meshOf = (given: Parameters<typeof layoutOf>[0]) =>
    (FEATURES.flatMap(({ manifests }) => manifests(layoutOf(given))) as { kind: string }[]).filter(
      ({ kind }) => kind === 'Mesh',
    );
  expect([hasRelay(layoutOf({})), meshOf({})]).toEqual([false, []]);
  for (const blockUdp of ['all', 'none'] as const) {
    expect(relayEndpoint(layoutOf({ blockUdp }))).toBe('203.0.113.250:3478');
    expect(meshOf({ blockUdp })).toEqual([
      {
        apiVersion: 'net.unbounded-cloud.io/v1alpha1',
        kind: 'Mesh',
        metadata: { name: 'default' },
        spec: { relay: { provider: 'external', external: { endpoint: '203.0.113.250:3478' } } },
      },
    ]);
  }
  expect(relayEndpoint(layoutOf({ blockUdp: 'all', fabric: true, underlay: 'ipv6' }))).toMatch(/^\[.*\]:3478$/);
});

test.each([
  [
    { topology: 'mesh' },
    '--block-udp all: with --topology mesh sites have no external addresses; must be pools or chain',
  ],
  [{ between: 'VXLAN' }, '--block-udp all: a relay carries no VXLAN; --between must be Auto or WireGuard'],
] as const)('a lab whose links no relay carries is refused: %j', (given, message) => {
  expect(() => layoutOf({ ...given, blockUdp: 'all' })).toThrow(message);
});
