import { fdbEntryKind, type KindDefinition, neighborKind, networkEndpointKind, networkKind } from '@unbounded/crds';
import { resourceOf } from '@unbounded/kube';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { type ApiServer, borrowApiServer, resetCluster } from './index.ts';
import { objectCreator, refusalOf } from './object-creator.testdata.ts';

/** What the API server takes of stretched L2, and with which words it refuses the rest. */

let api: ApiServer;
beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
});
afterAll(() => api?.stop());

const create = objectCreator(() => api);

const lan = (rest: object = {}): object => ({ prefixes: ['192.0.2.0/24'], namespaceSelector: {}, ...rest });
const endpoint = (rest: object = {}): object => ({
  ...{ network: 'lan', node: 'n1', pod: 'p1', interface: 'net1', mac: '02:00:5e:10:00:01', addresses: ['192.0.2.7'] },
  ...rest,
});
const station = { network: 'lan', mac: '02:00:5e:10:00:01', source: 'static' };
const binding = { network: 'lan', ip: '192.0.2.7', source: 'static' };

const accepted: [what: string, kind: KindDefinition, spec: object, name?: string][] = [
  ['a network', networkKind, lan()],
  [
    'everything that a network can have',
    networkKind,
    lan({
      prefixes: ['192.0.2.0/24', '2001:db8::/64'],
      gateways: ['192.0.2.1', '2001:db8::1'],
      namespaceSelector: { matchLabels: { team: 'shop' } },
      trustedNamespaceSelector: { matchLabels: { team: 'network' } },
      segments: [{ name: 'web', reaches: ['db'] }, { name: 'db' }],
      ...{ unknownUnicast: 'Replicate', broadcast: 'Replicate', multicast: 'Replicate', mtu: 1400 },
    }),
  ],
  ['an endpoint', networkEndpointKind, endpoint({ segment: 'web', isTrusted: true })],
  ['an entry of a MAC address', fdbEntryKind, station, 'lan.02-00-5e-10-00-01'],
  ['a neighbor of IPv4', neighborKind, binding, 'lan.ip.192.0.2.7'],
  ['a neighbor of IPv6', neighborKind, { ...binding, ip: '2001:db8::7' }, 'lan.ip.2001xdb8xx7'],
  ['a neighbor whose address ends with zeros', neighborKind, { ...binding, ip: '2001:db8::' }, 'lan.ip.2001xdb8xx'],
];

test.each(accepted)('accepts %s', async (_, kind, spec, name) => {
  await expect(create(kind, spec, name)).resolves.toBeDefined();
});

const refused: [what: string, kind: KindDefinition, spec: object, ...texts: string[]][] = [
  ['no prefixes', networkKind, lan({ prefixes: [] }), 'spec.prefixes'],
  ['a prefix with host bits', networkKind, lan({ prefixes: ['192.0.2.1/24'] }), '"192.0.2.1/24" has host bits set'],
  [
    'a gateway outside of the prefixes',
    networkKind,
    lan({ gateways: ['198.51.100.1'] }),
    'spec.gateways',
    'gateways 198.51.100.1: must be inside of the prefixes 192.0.2.0/24',
  ],
  [
    'two gateways of a family',
    networkKind,
    lan({ gateways: ['192.0.2.1', '192.0.2.2'] }),
    'at most one address of each IP family',
  ],
  ['a gateway that is no address', networkKind, lan({ gateways: ['router'] }), '"router" is not an IP address'],
  ['an MTU below 1280', networkKind, lan({ mtu: 1279 }), 'spec.mtu', 'greater than or equal to 1280'],
  [
    'a segment that reaches one that is none',
    networkKind,
    lan({ segments: [{ name: 'web', reaches: ['db'] }] }),
    'reaches must name segments of this network',
  ],
  ['a segment twice', networkKind, lan({ segments: [{ name: 'web' }, { name: 'web' }] }), 'Duplicate value'],
  ['a policy that is none', networkKind, lan({ broadcast: 'Flood' }), 'spec.broadcast', '"Drop", "Replicate"'],
  ['no namespaces', networkKind, { prefixes: ['192.0.2.0/24'] }, 'namespaceSelector: Required value'],
  [
    'the MAC address of a group',
    networkEndpointKind,
    endpoint({ mac: '01:00:5e:00:00:01' }),
    'spec.mac',
    '"01:00:5e:00:00:01" is the address of a group or of nobody',
  ],
  ['a MAC address of nobody', networkEndpointKind, endpoint({ mac: '00:00:00:00:00:00' }), 'a group or of nobody'],
  [
    'a MAC address in another form',
    networkEndpointKind,
    endpoint({ mac: '02-00-5E-10-00-01' }),
    '"02-00-5E-10-00-01" is no MAC address in lower case like 02:00:5e:10:00:01',
  ],
  [
    'an address in another form',
    networkEndpointKind,
    endpoint({ addresses: ['2001:DB8::1'] }),
    'spec.addresses[0]',
    '"2001:DB8::1" is no IP address in its canonical form (RFC 5952)',
  ],
  ['a multicast address', networkEndpointKind, endpoint({ addresses: ['224.0.0.1'] }), 'is a loopback, link-local'],
  ['an interface with a slash', networkEndpointKind, endpoint({ interface: 'net/1' }), 'spec.interface'],
  ['a Pod that cannot be', networkEndpointKind, endpoint({ pod: '..' }), 'spec.pod'],
  [
    'an entry under another name than its key’s',
    fdbEntryKind,
    station,
    'metadata.name must be "lan.02-00-5e-10-00-01", which follows from spec',
  ],
  [
    'a neighbor under another name than its key’s',
    neighborKind,
    { ...binding, ip: '2001:db8::7' },
    'metadata.name must be "lan.ip.2001xdb8xx7", which follows from spec',
  ],
  ['a source that is none', fdbEntryKind, { ...station, source: 'guessed' }, 'spec.source'],
];

test.each(refused)('refuses %s, and says what would be accepted', async (_, kind, spec, ...texts) => {
  const refusal = await refusalOf(create(kind, spec));
  for (const text of texts) expect(refusal).toContain(text);
});

test.each(['..\\..\\nodes?watch=true&a=/y', 'shop/..', 'shop', 'shop/e1/x', '%zz/x', 'shop/E1'])(
  'refuses %j as the endpoint of an entry',
  async (key) => {
    const name = 'lan.02-00-5e-10-00-09';
    const client = api.cluster.client(resourceOf(fdbEntryKind));
    await create(fdbEntryKind, { ...station, mac: '02:00:5e:10:00:09' }, name).catch(() => undefined);
    const bound = (text: string) =>
      client.mergePatch(name, { status: { endpoint: text, managingNode: 'n1' } }, { subresource: 'status' });
    expect(await refusalOf(bound(key))).toContain('status.endpoint');
    await bound('shop/web-0.net1');
  },
);

test.each<[KindDefinition, object, string]>([
  [fdbEntryKind, { ...station, mac: '02:00:5e:10:00:02' }, 'lan.02-00-5e-10-00-02'],
  [neighborKind, { ...binding, ip: '192.0.2.8' }, 'lan.ip.192.0.2.8'],
  [networkEndpointKind, endpoint(), 'kept'],
])('the key of $kind does not change', async (kind, spec, name) => {
  await create(kind, spec, name);
  const client = api.cluster.client(resourceOf(kind));
  const options = kind.scope === 'Namespaced' ? { namespace: 'default' } : {};
  const refusal = await refusalOf(client.mergePatch(name, { spec: { network: 'other' } }, options));
  expect(refusal).toContain('is the key of the object and cannot be changed');
});
