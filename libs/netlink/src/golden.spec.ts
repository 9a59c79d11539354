import { readFileSync } from 'node:fs';

import { describe, expect, test } from 'vitest';

import { readAttributeList } from './attribute.codec.ts';
import { encodeAddress } from './link-address.codec.ts';
import { encodeLink } from './link.codec.ts';
import { readMessages } from './message.codec.ts';
import { encodeNeighbour } from './neighbour.codec.ts';
import { encodeNexthop, encodeNexthopDelete } from './nexthop.codec.ts';
import { encodeRoute, encodeRouteDelete } from './route.codec.ts';
import { encodeRule } from './rule.codec.ts';
import { encodeClsact } from './traffic-control.codec.ts';

/** What iproute2 sent, recorded by test/record.sh. */
const golden = JSON.parse(readFileSync(new URL('../testdata/golden.json', import.meta.url), 'utf8')) as Record<
  string,
  string
>;

const fromHex = (text: string): Uint8Array =>
  Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
const toHex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

type Tree = string | readonly (readonly [type: number, value: Tree])[];

/** Attributes in the order of their types, nests as trees: what the kernel makes of the bytes, whatever their order. */
const treeOf = (bytes: Uint8Array): Tree => {
  try {
    const list = readAttributeList(bytes);
    const covered = list.reduce((sum, { bytes }) => sum + ((4 + bytes.length + 3) & ~3), 0);
    if (list.length === 0 || covered < bytes.length || list.some(({ type }) => type > 60)) return toHex(bytes);
    return list.map(({ type, bytes }) => [type, treeOf(bytes)] as const).sort(([a], [b]) => a - b);
  } catch {
    return toHex(bytes);
  }
};

const HEADER: Readonly<Record<string, number>> = {
  link: 16,
  address: 8,
  route: 12,
  nexthop: 8,
  rule: 12,
  neighbour: 12,
  fdb: 12,
  clsact: 20,
};

const meaning = (name: string, body: Uint8Array): { header: string; attributes: Tree } => {
  const size = HEADER[name.split(' ')[0] ?? ''] ?? 0;
  const attributes = treeOf(body.subarray(size));
  return {
    header: toHex(body.subarray(0, size)),
    attributes: name.startsWith('link geneve') ? withoutZeros(attributes) : attributes,
  };
};

/** iproute2 spells out GENEVE's defaults, which are zero: saying nothing means the same. */
const withoutZeros = (tree: Tree): Tree =>
  typeof tree === 'string'
    ? tree
    : tree
        .map(([type, value]) => [type, withoutZeros(value)] as const)
        .filter(([, value]) => value === '' || !/^0+$/.test(String(value)));

const LOWER = 2; // index of the recorder's device
const seg6 = { type: 'seg6', mode: 'encap', segments: ['2001:db8:a::1', '2001:db8:b::1'] } as const;

describe('our bytes mean what iproute2 says', () => {
  test.each<[string, Uint8Array]>([
    ['link up', encodeLink(LOWER, { up: true })],
    ['link mtu', encodeLink(LOWER, { mtu: 1400 })],
    ['link alias', encodeLink(LOWER, { alias: 'ours' })],
    ['link bridge', encodeLink(0, { name: 'br0', kind: { kind: 'bridge' } })],
    ['link veth', encodeLink(0, { name: 'va', kind: { kind: 'veth', peer: { name: 'vb' } } })],
    [
      'link vxlan external',
      encodeLink(0, {
        name: 'vx1',
        mac: '02:0a:01:00:01:ff',
        mtu: 1450,
        kind: {
          kind: 'vxlan',
          external: true,
          port: 4789,
          learning: false,
          udp6ZeroChecksumRx: true,
          sourcePorts: { low: 47891, high: 47922 },
        },
      }),
    ],
    [
      'link vxlan fixed',
      encodeLink(0, {
        name: 'vx2',
        kind: {
          kind: 'vxlan',
          vni: 7,
          remote: '192.0.2.9',
          local: '192.0.2.1',
          port: 4789,
          underlay: LOWER,
          learning: true,
        },
      }),
    ],
    [
      'link geneve external',
      encodeLink(0, { name: 'gn1', kind: { kind: 'geneve', external: true, port: 6081, udp6ZeroChecksumRx: true } }),
    ],
    [
      'link geneve fixed',
      encodeLink(0, { name: 'gn2', kind: { kind: 'geneve', vni: 1, remote: '192.0.2.9', port: 6081 } }),
    ],
    ['link dummy', encodeLink(0, { name: 'du0', kind: { kind: 'dummy' } })],
    ['link wireguard', encodeLink(0, { name: 'wg0', kind: { kind: 'wireguard' } })],
    ['link vrf', encodeLink(0, { name: 'vrf0', kind: { kind: 'vrf', table: 1000 } })],
    ['address v4', encodeAddress({ link: LOWER, address: '198.51.100.1/32' })],
    ['address v6', encodeAddress({ link: LOWER, address: '2001:db8:1::1/128' })],
    ['route plain', encodeRoute({ dst: '100.64.0.0/16', link: LOWER, metric: 10, protocol: 81, prefSrc: '192.0.2.1' })],
    ['route gateway', encodeRoute({ dst: '100.65.0.0/16', gateway: '192.0.2.7', mtu: 1400, protocol: 3 })],
    [
      'route onlink',
      encodeRoute({ dst: '100.66.0.0/16', gateway: '10.9.9.9', link: LOWER, onlink: true, protocol: 3 }),
    ],
    ['route table', encodeRoute({ dst: '100.67.0.0/16', link: LOWER, table: 1000, protocol: 3 })],
    ['route v6', encodeRoute({ dst: '2001:db8:2::/48', gateway: '2001:db8::7', link: LOWER, metric: 5, protocol: 3 })],
    ['route blackhole', encodeRoute({ dst: '100.68.0.0/16', type: 'blackhole', protocol: 3 })],
    [
      'route multipath',
      encodeRoute({
        dst: '100.69.0.0/16',
        protocol: 3,
        nexthops: [{ gateway: '192.0.2.7', weight: 2 }, { gateway: '192.0.2.8' }],
      }),
    ],
    ['route nexthop id', encodeRoute({ dst: '100.70.0.0/16', nexthopId: 11, protocol: 3 })],
    [
      'route encap ip',
      encodeRoute({
        dst: '100.71.0.0/16',
        link: LOWER,
        encap: { type: 'ip', id: 7, dst: '192.0.2.9', ttl: 64 },
        protocol: 3,
      }),
    ],
    ['route encap seg6', encodeRoute({ dst: '2001:db8:3::/48', link: LOWER, encap: seg6, protocol: 3 })],
    ['route delete', encodeRouteDelete({ dst: '100.64.0.0/16', link: LOWER, metric: 10 })],
    ['nexthop', encodeNexthop({ id: 21, gateway: '192.0.2.7', link: LOWER, protocol: 81 })],
    ['nexthop group', encodeNexthop({ id: 31, group: [{ id: 11, weight: 3 }, { id: 12 }], protocol: 0 })],
    ['nexthop fdb', encodeNexthop({ id: 41, gateway: '192.0.2.9', fdb: true, protocol: 0 })],
    [
      'nexthop resilient',
      encodeNexthop({
        id: 51,
        group: [{ id: 11 }, { id: 12 }],
        resilient: { buckets: 32, idleTimer: 60, unbalancedTimer: 0 },
        protocol: 0,
      }),
    ],
    ['nexthop delete', encodeNexthopDelete({ id: 21 })],
    ['rule mark', encodeRule({ family: 4, priority: 100, mark: { value: 0x200, mask: 0xf00 }, table: 1000 })],
    ['rule suppress', encodeRule({ family: 4, priority: 101, table: 254, suppressPrefixLength: 0 })],
    ['rule from', encodeRule({ family: 4, priority: 102, src: '100.64.0.0/16', iif: 'lower', table: 100 })],
    ['neighbour', encodeNeighbour({ family: 4, link: LOWER, address: '192.0.2.7', mac: '02:00:00:00:00:01' })],
    [
      'fdb',
      encodeNeighbour({
        family: 'bridge',
        link: LOWER,
        address: '192.0.2.9',
        mac: '02:00:00:00:00:01',
        state: 'permanent',
      }),
    ],
    ['clsact', encodeClsact(LOWER)],
  ])('%s', (name, body) => {
    let recorded: Uint8Array | undefined;
    readMessages(fromHex(golden[name] ?? ''), (message) => (recorded = message.body));
    if (!recorded) throw new Error(`nothing is recorded for ${name}: run test/record.sh`);
    expect(meaning(name, body)).toEqual(meaning(name, recorded));
  });
});
