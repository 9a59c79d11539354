import { expect, test } from 'vitest';
import { layoutOf } from '../../layout/layout.ts';
import { bordersOf } from './relay.ts';
import { blockUdpFrom } from '../../cli/arguments.ts';

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

test.each([[[]], [['some']], [['all', 'none']]])('block-udp %j says what would be right', (words) => {
  expect(() => blockUdpFrom(words)).toThrow(`tools/lab block-udp ${words.join(' ')}: one of all, none would be right`);
});
