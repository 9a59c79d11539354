import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { layoutOf } from '../../layout/layout.ts';
import { FEATURES, labelsOf } from '../features.ts';
import { checkout } from '../../machine/paths.ts';
import { EXAMPLE_RULE } from './example.ts';
import { firewall, seenAsTable, seenIn } from './firewall.ts';
import { admittedBlocks, partnerIps } from './layout.ts';

const objectsOf = (given: Parameters<typeof layoutOf>[0]): { kind: string }[] =>
  FEATURES.flatMap(({ manifests }) => manifests(layoutOf(given))) as { kind: string }[];

test('a lab with --partner has a pool of the addresses that the partner admits; others have none', () => {
  expect(objectsOf({})).toEqual([]);
  expect(objectsOf({ partner: true, ip: 'dual' })).toEqual([
    {
      apiVersion: 'net.unbounded-cloud.io/v1alpha1',
      kind: 'EgressIPPool',
      metadata: { name: 'partner' },
      spec: {
        blocks: ['203.0.113.200/29', '2001:db8:203::200/125'],
        nodeSelector: { matchLabels: { 'node-restriction.kubernetes.io/egress': 'partner' } },
      },
    },
  ]);
});

test('one gateway of the first site is eligible, and only with --partner', () => {
  const labelled = (layout: ReturnType<typeof layoutOf>): string[] =>
    layout.nodes.flatMap((node) => (Object.keys(labelsOf(layout, node)).length > 0 ? [node.name] : []));
  expect(labelled(layoutOf({ partner: true, gateways: 2 }))).toEqual(['s1-g1']);
  expect(labelled(layoutOf({ gateways: 2 }))).toEqual([]);
});

test('no host of the lab has an address that the partner admits, or its own', () => {
  const layout = layoutOf({ partner: true, ip: 'dual', sites: 8, gateways: 4 });
  const taken = layout.nodes.flatMap(({ external }) => external?.ips ?? []);
  expect(taken.filter((ip) => partnerIps(layout).includes(ip) || /[:.]20[0-7]$/.test(ip))).toEqual([]);
  expect(admittedBlocks(layout)).toHaveLength(2);
});

test.each([
  [{ topology: 'mapped' }, '--partner: with --topology mapped no gateway stands on the WAN; must be pools or chain'],
  [{ sites: 1, gateways: 0 }, '--partner: with --gateways 0 nobody owns an egress address; must be at least 1'],
  [
    { fabric: true, underlay: 'ipv6' },
    '--partner: with --underlay ipv6 pods may lack its addresses’ family; must be same',
  ],
] as const)('a lab in which nobody can own an egress address is refused: %j', (given, message) => {
  expect(() => layoutOf({ ...given, partner: true })).toThrow(message);
});

test('the firewall lists blocks by family, and none of a family that the lab does not have', () => {
  const text = firewall(['203.0.113.200/29']);
  expect(text).toContain('set allowed4 { type ipv4_addr; flags interval; elements = { 203.0.113.200/29 }; }');
  expect(text).toContain('set allowed6 { type ipv6_addr; flags interval; }');
});

test('what the firewall has counted is told by verdict, family, source and protocol', () => {
  const set = (name: string, ...elements: (readonly [string, string, number])[]): object => ({
    set: {
      name,
      elem: elements.map(([source, protocol, packets]) => ({
        elem: { val: { concat: [source, protocol] }, counter: { packets, bytes: 0 } },
      })),
    },
  });
  const seen = seenIn(
    JSON.stringify({
      nftables: [
        { metainfo: {} },
        { set: { name: 'allowed4', elem: [{ prefix: { addr: '203.0.113.200', len: 29 } }] } },
        set('refused4', ['203.0.113.1', 'udp', 1]),
        set('admitted6', ['2001:db8:203::200', 'tcp', 3]),
        set('admitted4', ['203.0.113.200', 'tcp', 12], ['203.0.113.200', 'icmp', 2]),
        { set: { name: 'refused6' } },
      ],
    }),
  );
  expect(seenAsTable(seen)).toBe(
    [
      'SOURCE                   PROTOCOL       PACKETS  VERDICT',
      '203.0.113.200            icmp                 2  admitted',
      '203.0.113.200            tcp                 12  admitted',
      '2001:db8:203::200        tcp                  3  admitted',
      '203.0.113.1              udp                  1  refused',
    ].join('\n'),
  );
});

test('a lab without kubectl has the rule that the README applies', () => {
  const text = readFileSync(join(checkout, 'docs/examples/static-egress.yaml'), 'utf8');
  const [{ podSelector, pool }] = EXAMPLE_RULE.spec.rules;
  expect(text).toContain(`podSelector: { matchLabels: { probe: ${podSelector.matchLabels.probe} } }`);
  expect(text).toContain(`pool: ${pool}`);
});
