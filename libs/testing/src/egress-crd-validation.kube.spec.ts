import {
  clusterStaticEgressIpKind,
  egressIpPoolKind,
  egressNodeSliceKind,
  type KindDefinition,
  staticEgressIpKind,
} from '@unbounded/crds';
import { clientOf } from '@unbounded/kube';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { type ApiServer, borrowApiServer, resetCluster } from './index.ts';
import { objectCreator, refusalOf } from './object-creator.testdata.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
});
afterAll(() => api?.stop());

const create = objectCreator(() => api);
const rule = (...rules: object[]) => ({ rules });
const served = { 'service-name': 'frontend' };

const accepted: [what: string, kind: KindDefinition, spec: object][] = [
  [
    'the manifest of the design document',
    staticEgressIpKind,
    rule({ ...served, egressip: '192.0.2.10', cidr: '198.51.100.0/24' }),
  ],
  [
    'everything that a rule can have',
    staticEgressIpKind,
    rule({
      podSelector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['web'] }] },
      egressips: ['192.0.2.10', '2001:db8::10'],
      cidr: '0.0.0.0/0',
      except: ['198.51.100.0/24'],
      priority: 7,
      whenUnavailable: 'Node',
    }),
  ],
  [
    'all pods of a namespace, with addresses of a pool',
    staticEgressIpKind,
    rule({ podSelector: {}, pool: 'public', addresses: 2 }),
  ],
  ['all pods of all namespaces', clusterStaticEgressIpKind, rule({ namespaceSelector: {}, pool: 'public' })],
  [
    'everything that a pool can have',
    egressIpPoolKind,
    {
      blocks: ['192.0.2.96/28', '2001:db8::/120'],
      ranges: [{ from: '203.0.113.10', to: '203.0.113.20' }],
      exclusions: ['192.0.2.97', '2001:db8::/124'],
      nodeSelector: { matchLabels: { egress: 'yes' } },
      namespaceSelector: { matchLabels: { team: 'shop' } },
      interface: 'eth1',
      nextHops: ['192.0.2.1', 'fe80::1'],
      announce: 'None',
    },
  ],
  ['a slice', egressNodeSliceKind, { nodeName: 'n1', nodeUID: 'u', index: 0 }],
];

test.each(accepted)('accepts %s', async (_, kind, spec) => {
  await expect(create(kind, spec)).resolves.toBeDefined();
});

const address = { ...served, egressip: '192.0.2.10' };
const refused: [what: string, kind: KindDefinition, spec: object, ...texts: string[]][] = [
  [
    'a name as an address',
    staticEgressIpKind,
    rule({ ...served, egressip: 'gateway' }),
    'spec.rules[0].egressip',
    '"gateway" is not an IP address: write it like 192.0.2.1',
  ],
  [
    'a multicast address',
    staticEgressIpKind,
    rule({ ...served, egressip: '224.0.0.1' }),
    '"224.0.0.1" is a loopback, link-local, multicast',
  ],
  [
    'a loopback address in a list',
    staticEgressIpKind,
    rule({ ...served, egressips: ['192.0.2.10', '127.0.0.1'] }),
    'spec.rules[0].egressips[1]',
  ],
  [
    'a destination with host bits',
    staticEgressIpKind,
    rule({ ...address, cidr: '198.51.100.1/24' }),
    'spec.rules[0].cidr',
    'has host bits set',
  ],
  [
    'an exception that is no block',
    staticEgressIpKind,
    rule({ ...address, except: ['198.51.100.1'] }),
    'spec.rules[0].except[0]',
    'is not a CIDR',
  ],
  [
    'an address and a cidr of two families',
    staticEgressIpKind,
    rule({ ...address, cidr: '2001:db8::/32' }),
    'spec.rules[0].cidr',
    'cidr "2001:db8::/32" and egressip "192.0.2.10" must be of the same IP family',
  ],
  [
    'addresses without the family of cidr',
    staticEgressIpKind,
    rule({ ...served, egressips: ['192.0.2.10'], cidr: '::/0' }),
    'egressips must hold an address of the IP family of cidr "::/0"',
  ],
  [
    'two sources of addresses',
    staticEgressIpKind,
    rule({ ...address, pool: 'public' }),
    'exactly one of egressip, egressips and pool',
  ],
  ['no source of addresses', staticEgressIpKind, rule(served), 'exactly one of egressip, egressips and pool'],
  [
    'a number of addresses without a pool',
    staticEgressIpKind,
    rule({ ...address, addresses: 2 }),
    'name the EgressIPPool in pool',
  ],
  ['no pods', staticEgressIpKind, rule({ egressip: '192.0.2.10' }), 'exactly one of service-name and podSelector'],
  [
    'pods in two manners',
    staticEgressIpKind,
    rule({ ...address, podSelector: {} }),
    'exactly one of service-name and podSelector',
  ],
  [
    'an operator without values',
    staticEgressIpKind,
    rule({ egressip: '192.0.2.10', podSelector: { matchExpressions: [{ key: 'app', operator: 'In' }] } }),
    'operator "In": values must be given',
  ],
  ['no rules', staticEgressIpKind, rule(), 'spec.rules', 'at least 1 items'],
  [
    'a fallback that does not exist',
    staticEgressIpKind,
    rule({ ...address, whenUnavailable: 'Accept' }),
    'spec.rules[0].whenUnavailable',
  ],
  [
    'a rule of the cluster without namespaces',
    clusterStaticEgressIpKind,
    rule({ pool: 'public' }),
    'namespaceSelector: Required value',
  ],
  ['a pool without addresses', egressIpPoolKind, {}, 'must have an address'],
  ['a pool of link-local addresses', egressIpPoolKind, { blocks: ['169.254.0.0/16'] }, 'spec.blocks[0]'],
  [
    'a range of two families',
    egressIpPoolKind,
    { ranges: [{ from: '192.0.2.1', to: '2001:db8::1' }] },
    'from "192.0.2.1" and to "2001:db8::1" must be of the same IP family',
  ],
  [
    'an exclusion that is no address',
    egressIpPoolKind,
    { blocks: ['192.0.2.0/24'], exclusions: ['first'] },
    '"first" is neither an address nor a block',
  ],
  [
    'two next hops of a family',
    egressIpPoolKind,
    { blocks: ['192.0.2.0/24'], nextHops: ['192.0.2.1', '192.0.2.2'] },
    'at most one address of each IP family',
  ],
  ['a device with a slash', egressIpPoolKind, { blocks: ['192.0.2.0/24'], interface: 'eth0/1' }, 'spec.interface'],
];

test.each(refused)('refuses %s, and says what would be accepted', async (_, kind, spec, ...texts) => {
  const refusal = await refusalOf(create(kind, spec));
  for (const text of texts) expect(refusal).toContain(text);
});

test('a StaticEgressIP belongs to a namespace', async () => {
  await create(staticEgressIpKind, rule(address));
  const objects = await clientOf(api.cluster, staticEgressIpKind).listAll();
  expect(objects.every(({ metadata }) => metadata.namespace === 'default')).toBe(true);
});
