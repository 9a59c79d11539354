import { addressBits, type Family, formatPrefix, overlaps, parsePrefix, prefixOf } from '@unbounded/ip';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { OverlayTraffic } from '../../kernel/overlay-traffic.ts';
import {
  foreignObjects,
  type FoundObjects,
  NO_OBJECTS,
  type Objects,
  planFirewalld,
  planFirewalldChanges,
} from './firewalld.plan.ts';

const traffic: OverlayTraffic = {
  devices: ['cbr0', 'vxlan0'],
  peers: ['10.1.0.20', 'fd00:1::20'],
  peerPorts: [4789, 51_820],
  peerProtocols: [4],
  openPorts: [51_821],
  entries: ['10.1.0.99/32', '10.9.0.0/16'],
  hasIpv6: true,
};
const objects = planFirewalld(traffic);
const all = (wanted: Objects): FoundObjects => ({ permanent: wanted, runtime: wanted });

test('peers reach the ports and protocols of tunnels, anybody those of peers that find the node, and nobody else anything', () => {
  expect(objects.policy['unbounded-input']).toMatchObject({ ingress_zones: ['ANY'], egress_zones: ['HOST'] });
  expect(objects.policy['unbounded-input']!['rich_rules']).toEqual([
    'rule family="ipv4" source ipset="unbounded-peers4" port port="4789" protocol="udp" accept',
    'rule family="ipv4" source ipset="unbounded-peers4" port port="51820" protocol="udp" accept',
    'rule family="ipv4" source ipset="unbounded-peers4" protocol value="4" accept',
    'rule family="ipv6" source ipset="unbounded-peers6" port port="4789" protocol="udp" accept',
    'rule family="ipv6" source ipset="unbounded-peers6" port port="51820" protocol="udp" accept',
    'rule family="ipv6" source ipset="unbounded-peers6" protocol value="4" accept',
    'rule port port="51821" protocol="udp" accept',
  ]);
});

test('names are as short as firewalld wants them', () => {
  for (const name of Object.keys(objects.zone)) expect(name.length).toBeLessThanOrEqual(17);
  for (const name of Object.keys(objects.policy)) expect(name.length).toBeLessThanOrEqual(18);
  for (const name of Object.keys(objects.ipset)) expect(name.length).toBeLessThanOrEqual(32);
});

const prefix = fc
  .tuple(fc.constantFrom<Family>(4, 6), fc.bigInt(0n, (1n << 128n) - 1n), fc.nat(128))
  .map(([family, value, length]) => {
    const bits = addressBits(family);
    return formatPrefix(prefixOf({ family, value: value >> BigInt(128 - bits) }, length % (bits + 1)));
  });

test('entries of sets do not overlap, and none is everything', () => {
  fc.assert(
    fc.property(fc.array(prefix, { maxLength: 12 }), (entries) => {
      const { ipset } = planFirewalld({ ...traffic, entries });
      for (const name of ['unbounded-entries4', 'unbounded-entries6']) {
        const planned = (ipset[name]!['entries'] as string[]).map(parsePrefix);
        expect(planned.every(({ length }) => length > 0)).toBe(true);
        for (const [index, one] of planned.entries())
          expect(planned.slice(index + 1).some((other) => overlaps(one, other))).toBe(false);
      }
    }),
  );
});

test('everything is written as its halves', () => {
  const { ipset } = planFirewalld({ ...traffic, entries: ['0.0.0.0/0', '::/0', '10.0.0.0/8'] });
  expect(ipset['unbounded-entries4']!['entries']).toEqual(['0.0.0.0/1', '128.0.0.0/1']);
  expect(ipset['unbounded-entries6']!['entries']).toEqual(['::/1', '8000::/1']);
});

test('where nothing is, all is added in the order in which objects name each other, and comes into force with a reload', () => {
  const { steps, needsReload } = planFirewalldChanges(objects, all(NO_OBJECTS));
  expect(steps.map(({ kind }) => kind)).toEqual(['ipset', 'ipset', 'ipset', 'ipset', 'zone', 'policy', 'policy']);
  expect(steps.every((step) => step.do === 'add' && step.store === 'permanent')).toBe(true);
  expect(needsReload).toBe(true);
});

test('at rest nothing is changed, whatever the order and whatever firewalld leaves out', () => {
  const found: Objects = JSON.parse(JSON.stringify(objects), (key, value: unknown) => {
    if (Array.isArray(value)) return value.length > 0 ? value.toReversed() : undefined;
    return key === 'version' ? undefined : value;
  }) as Objects;
  expect(planFirewalldChanges(objects, all(found))).toEqual({ steps: [], needsReload: false });
});

test('a changed set is written on disk and in force, without a reload', () => {
  const { steps, needsReload } = planFirewalldChanges(
    planFirewalld({ ...traffic, peers: ['10.1.0.21', 'fd00:1::20'] }),
    all(objects),
  );
  expect(steps).toMatchObject([
    { do: 'set', store: 'permanent', name: 'unbounded-peers4' },
    { do: 'set', store: 'runtime', name: 'unbounded-peers4', settings: { entries: ['10.1.0.21/32'] } },
  ]);
  expect(needsReload).toBe(false);
});

test('taken away are policies first, then the zone that they name, then sets; and with a reload what is left of them', () => {
  const { steps, needsReload } = planFirewalldChanges(NO_OBJECTS, all(objects));
  expect(steps.map(({ kind }) => kind)).toEqual(['policy', 'policy', 'zone', 'ipset', 'ipset', 'ipset', 'ipset']);
  expect(needsReload).toBe(true);
  expect(planFirewalldChanges(NO_OBJECTS, { permanent: NO_OBJECTS, runtime: objects })).toEqual({
    steps: [],
    needsReload: true,
  });
  expect(planFirewalldChanges(NO_OBJECTS, all(NO_OBJECTS))).toEqual({ steps: [], needsReload: false });
});

test('whose an object is tells its description', () => {
  expect(foreignObjects(all(objects))).toEqual([]);
  const foreign = { ...objects, zone: { unbounded: { target: 'DROP', description: 'mine' } } };
  expect(foreignObjects({ permanent: foreign, runtime: objects })).toEqual(['zone unbounded']);
});
