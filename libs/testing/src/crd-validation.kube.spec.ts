import {
  gatewayPoolKind,
  gatewayPoolPeeringKind,
  type KindDefinition,
  meshKind,
  siteGatewayPoolAssignmentKind,
  siteKind,
  sitePeeringKind,
} from '@unbounded/crds';
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
const assignment = (extra: object = {}) => ({ cidrBlocks: ['100.64.0.0/16'], ...extra });
const site = (spec: object = {}) => ({ nodeCidrs: ['10.1.0.0/16'], podCidrAssignments: [assignment()], ...spec });
const withAssignment = (extra: object) => site({ podCidrAssignments: [assignment(extra)] });
const pool = (spec: object = {}) => ({ nodeSelector: { gateway: 'yes' }, ...spec });
const locators = (locatorPrefix: string) => ({ l2: { locatorPrefix } });
const relay = (extra: object) => ({ relay: { provider: 'external', external: { endpoint: 'r:1' }, ...extra } });
const endpoint = (text: string) => relay({ external: { endpoint: text } });
const managed = (block: object) => ({ relay: { provider: 'managed', managed: block } });
const PEM = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
const tls = (extra: object) => relay({ external: { endpoint: 'r:1', transport: 'tls' }, ...extra });
const probe = (pathProbe: object) => relay({ pathProbe });
const health = (settings: object) => site({ healthCheckSettings: settings });

const refused: [what: string, kind: KindDefinition, spec: object, ...texts: string[]][] = [
  [
    'a block that is no CIDR',
    siteKind,
    site({ nodeCidrs: ['10.1.0.0'] }),
    'spec.nodeCidrs[0]',
    '"10.1.0.0" is not a CIDR: write address/length like 192.0.2.0/24',
  ],
  ['an octet above 255', siteKind, site({ nodeCidrs: ['10.1.0.256/24'] }), 'spec.nodeCidrs[0]', 'is not a CIDR'],
  [
    'a prefix too long for its family',
    siteKind,
    site({ nodeCidrs: ['10.1.0.0/33'] }),
    'spec.nodeCidrs[0]',
    'is not a CIDR',
  ],
  ['host bits', siteKind, site({ nodeCidrs: ['10.1.2.3/16'] }), 'spec.nodeCidrs[0]', '"10.1.2.3/16" has host bits set'],
  ['IPv6 host bits', siteKind, site({ nodeCidrs: ['2001:db8::1/64'] }), 'spec.nodeCidrs[0]', 'has host bits set'],
  ['no node blocks', siteKind, site({ nodeCidrs: [] }), 'spec.nodeCidrs', 'at least 1 items'],
  ['a site without node blocks', siteKind, { podCidrAssignments: [assignment()] }, 'spec.nodeCidrs: Required value'],
  [
    'a block twice',
    siteKind,
    site({ nodeCidrs: ['10.1.0.0/16', '10.1.0.0/16'] }),
    'spec.nodeCidrs[1]: Duplicate value',
  ],
  ['no assignments', siteKind, site({ podCidrAssignments: [] }), 'spec.podCidrAssignments', 'at least 1 items'],
  [
    'no pools',
    siteKind,
    withAssignment({ cidrBlocks: [] }),
    'spec.podCidrAssignments[0].cidrBlocks',
    'at least 1 items',
  ],
  [
    'a pool with host bits',
    siteKind,
    withAssignment({ cidrBlocks: ['100.64.0.1/16'] }),
    'spec.podCidrAssignments[0].cidrBlocks[0]',
    'host bits',
  ],
  [
    'a pool no larger than the default block',
    siteKind,
    withAssignment({ cidrBlocks: ['100.64.0.0/24'] }),
    'nodeBlockSizes.ipv4',
    '24 when not set',
    'must be longer than the prefix length of every IPv4 pool',
  ],
  [
    'a pool no larger than the block',
    siteKind,
    withAssignment({ nodeBlockSizes: { ipv4: 16 } }),
    'spec.podCidrAssignments[0].nodeBlockSizes.ipv4',
    'must be longer',
  ],
  [
    'one of the pools no larger than the block',
    siteKind,
    withAssignment({ cidrBlocks: ['100.64.0.0/16', '100.65.0.0/26'], nodeBlockSizes: { ipv4: 26 } }),
    'nodeBlockSizes.ipv4',
    'must be longer',
  ],
  [
    'an IPv4 block size of 30',
    siteKind,
    withAssignment({ nodeBlockSizes: { ipv4: 30 } }),
    'nodeBlockSizes.ipv4',
    'less than or equal to 28',
  ],
  [
    'an IPv6 block as long as its pool',
    siteKind,
    withAssignment({ cidrBlocks: ['fd00::/64'], nodeBlockSizes: { ipv6: 64 } }),
    'nodeBlockSizes.ipv6',
    'must be 1 to 16 bits longer',
  ],
  [
    'an IPv6 block far longer than its pool',
    siteKind,
    withAssignment({ cidrBlocks: ['fd00::/48'], nodeBlockSizes: { ipv6: 80 } }),
    'nodeBlockSizes.ipv6',
    'must be 1 to 16 bits longer',
  ],
  [
    'an IPv6 block of 129',
    siteKind,
    withAssignment({ cidrBlocks: ['fd00::/48'], nodeBlockSizes: { ipv6: 129 } }),
    'nodeBlockSizes.ipv6',
    '128',
  ],
  [
    'a malformed nonMasqueradeCIDR',
    siteKind,
    site({ nonMasqueradeCIDRs: ['x'] }),
    'spec.nonMasqueradeCIDRs[0]',
    '"x" is not a CIDR',
  ],
  ...(
    [
      ['0.0.0.0/0', 'is too wide: the prefix length must be at least 8 (IPv4) or 16 (IPv6)'],
      ['10.0.0.0/7', 'is too wide'],
      ['::/0', 'is too wide'],
      ['fc00::/7', 'is too wide'],
      ['127.0.0.0/8', 'holds loopback, link-local, multicast or unspecified addresses'],
      ['169.254.0.0/16', 'holds loopback'],
      ['169.254.169.254/32', 'holds loopback'],
      ['169.0.0.0/8', 'holds loopback'],
      ['224.0.0.0/8', 'holds loopback'],
      ['0.1.0.0/16', 'holds loopback'],
      ['::/16', 'holds loopback'],
      ['::1/128', 'holds loopback'],
      ['fe80::/16', 'holds loopback'],
      ['ff02::/16', 'holds loopback'],
    ] as const
  ).flatMap(([block, text]): typeof refused => [
    [`nodeCidrs ${block}`, siteKind, site({ nodeCidrs: [block] }), 'spec.nodeCidrs[0]', text],
    [
      `cidrBlocks ${block}`,
      siteKind,
      withAssignment({ assignmentEnabled: false, cidrBlocks: [block] }),
      'cidrBlocks[0]',
      text,
    ],
    [`routedCidrs ${block}`, gatewayPoolKind, pool({ routedCidrs: [block] }), 'spec.routedCidrs[0]', text],
  ]),
  ['an empty list of node names', gatewayPoolKind, pool({ nodeNames: [] }), 'spec.nodeNames', 'at least 1 items'],
  [
    'a nonMasqueradeCIDR with host bits',
    siteKind,
    site({ nonMasqueradeCIDRs: ['10.0.0.1/8'] }),
    'spec.nonMasqueradeCIDRs[0]',
    'host bits',
  ],
  [
    'an unknown protocol',
    siteKind,
    site({ tunnelProtocol: 'GRE' }),
    'spec.tunnelProtocol',
    'Unsupported value: "GRE": supported values: "WireGuard", "IPIP", "GENEVE", "VXLAN", "None", "Auto"',
  ],
  ['an MTU below 576', siteKind, site({ tunnelMTU: 575 }), 'spec.tunnelMTU', 'greater than or equal to 576'],
  ['an MTU above 9000', siteKind, site({ tunnelMTU: 9001 }), 'spec.tunnelMTU', 'less than or equal to 9000'],
  [
    'an interval of 9 ms',
    siteKind,
    health({ transmitInterval: 9 }),
    'spec.healthCheckSettings.transmitInterval',
    'from 10 ms to 4294967 ms',
  ],
  [
    'an interval text of 9 ms',
    siteKind,
    health({ receiveInterval: '9ms' }),
    'spec.healthCheckSettings.receiveInterval',
    'from 10 ms',
  ],
  [
    'an interval that is too long',
    siteKind,
    health({ transmitInterval: '2h' }),
    'spec.healthCheckSettings.transmitInterval',
    'to 4294967 ms',
  ],
  [
    'an interval that is no duration',
    siteKind,
    health({ transmitInterval: 'soon' }),
    'spec.healthCheckSettings.transmitInterval',
    'a duration like "300ms"',
  ],
  [
    'a multiplier of 0',
    siteKind,
    health({ detectMultiplier: 0 }),
    'spec.healthCheckSettings.detectMultiplier',
    'greater than or equal to 1',
  ],
  [
    'an unknown pool type',
    gatewayPoolKind,
    pool({ type: 'Public' }),
    'spec.type',
    'supported values: "External", "Internal"',
  ],
  ['an empty selector', gatewayPoolKind, pool({ nodeSelector: {} }), 'spec.nodeSelector', 'at least 1 properties'],
  [
    'a routed block with host bits',
    gatewayPoolKind,
    pool({ routedCidrs: ['10.0.0.1/8'] }),
    'spec.routedCidrs[0]',
    'host bits',
  ],
  ['a peering of one site', sitePeeringKind, { sites: ['a'] }, 'spec.sites', 'at least 2 items'],
  ['a peering of a site with itself', sitePeeringKind, { sites: ['a', 'a'] }, 'spec.sites[1]: Duplicate value'],
  ['an empty site name', sitePeeringKind, { sites: ['a', ''] }, 'spec.sites[1]', 'at least 1 chars'],
  [
    'an assignment without sites',
    siteGatewayPoolAssignmentKind,
    { sites: [], gatewayPools: ['p'] },
    'spec.sites',
    'at least 1 items',
  ],
  [
    'an assignment without pools',
    siteGatewayPoolAssignmentKind,
    { sites: ['a'], gatewayPools: [] },
    'spec.gatewayPools',
    'at least 1 items',
  ],
  [
    'a pool peering of one pool',
    gatewayPoolPeeringKind,
    { gatewayPools: ['p'] },
    'spec.gatewayPools',
    'at least 2 items',
  ],
  ['a relay without a provider', meshKind, { relay: { mode: 'auto' } }, 'spec.relay.provider: Required value'],
  [
    'an unknown provider',
    meshKind,
    { relay: { provider: 'dns' } },
    'spec.relay.provider',
    '"dns"',
    '"external", "managed"',
  ],
  [
    'an unknown mode',
    meshKind,
    relay({ mode: 'sometimes' }),
    'spec.relay.mode',
    '"sometimes"',
    '"auto", "always", "never"',
  ],
  [
    'an external relay that is not named',
    meshKind,
    { relay: { provider: 'external', managed: {} } },
    'spec.relay.external',
    'because spec.relay.provider is "external": external: {endpoint: "relay.example.com:3478"}',
  ],
  [
    'a managed relay without its block',
    meshKind,
    relay({ provider: 'managed' }),
    'spec.relay.managed',
    'because spec.relay.provider is "managed": managed: {}',
  ],
  ['an external relay without an endpoint', meshKind, relay({ external: {} }), 'endpoint: Required value'],
  [
    'an endpoint without a port',
    meshKind,
    endpoint('relay.example.com'),
    'external.endpoint',
    '"relay.example.com" is no',
  ],
  ['port 0', meshKind, endpoint('relay:0'), '"relay:0" is no host and port from 1 to 65535'],
  ['a port above 65535', meshKind, endpoint('relay:65536'), '"relay:65536" is no host and port from 1 to 65535'],
  ['an endpoint with a scheme', meshKind, endpoint('tcp://relay:1'), '"tcp://relay:1" is no', 'relay.example.com:3478'],
  ['an IPv6 address without brackets', meshKind, endpoint('2001:db8::1:3478'), '[2001:db8::1]:3478'],
  ['an octet of a relay above 255', meshKind, endpoint('192.0.2.256:1'), '"192.0.2.256:1" has neither'],
  ['brackets without an address', meshKind, endpoint('[1:2:3]:1'), '"[1:2:3]:1" has neither'],
  [
    'an unknown transport',
    meshKind,
    relay({ external: { endpoint: 'r:1', transport: 'wss' } }),
    '"wss"',
    '"tcp", "tls"',
  ],
  [
    'authorities of a relay without TLS',
    meshKind,
    relay({ caBundle: PEM }),
    'spec.relay.caBundle',
    'is for TLS: write external: {transport: "tls", ...}',
  ],
  [
    'authorities of a managed relay without TLS',
    meshKind,
    { relay: { ...managed({}).relay, caBundle: PEM } },
    'managed: {tls: {serverName:',
  ],
  [
    'authorities that are no PEM',
    meshKind,
    tls({ caBundle: 'x' }),
    'spec.relay.caBundle',
    'must hold certificates in PEM',
  ],
  [
    'a private key among authorities',
    meshKind,
    tls({ caBundle: `${PEM}-----BEGIN PRIVATE KEY-----` }),
    'must hold no private key',
  ],
  ['a static key that is none', meshKind, relay({ staticKey: 'x' }), '"x" is no public key of 32 bytes in base64'],
  [
    'an address as the name of a certificate',
    meshKind,
    managed({ tls: { serverName: '192.0.2.1' } }),
    '"192.0.2.1" is no DNS name like relay.example.com',
  ],
  ['fewer replicas than none', meshKind, managed({ replicas: -1 }), 'spec.relay.managed.replicas', 'Invalid value: -1'],
  [
    'a Service of another type',
    meshKind,
    managed({ serviceType: 'ClusterIP' }),
    'serviceType',
    '"LoadBalancer", "NodePort"',
  ],
  ['a port of relays that is none', meshKind, managed({ port: 70000 }), 'spec.relay.managed.port', '65535'],
  ['l2 without a prefix', meshKind, { l2: {} }, 'spec.l2.locatorPrefix: Required value'],
  [
    'an IPv4 prefix of locators',
    meshKind,
    locators('10.0.0.0/8'),
    'spec.l2.locatorPrefix',
    '"10.0.0.0/8" is no IPv6 prefix of /32 to /48',
  ],
  [
    'one that is too long',
    meshKind,
    locators('fd53:ab:cd:1::/64'),
    'write an IPv6 prefix of /32 to /48 like fd53:ab:cd::/48',
  ],
  ['one that is too short', meshKind, locators('fd00::/16'), '"fd00::/16" is no IPv6 prefix of /32 to /48'],
  [
    'one in another form',
    meshKind,
    locators('FD53:ab:cd::/48'),
    '"FD53:ab:cd::/48" is not in its canonical form (RFC 5952)',
  ],
  ['one with host bits', meshKind, locators('fd53:ab:cd::/40'), '"fd53:ab:cd::/40" has host bits set'],
  ['one of multicast', meshKind, locators('ff02::/48'), '"ff02::/48" holds link-local, multicast'],
  ['one of link-local addresses', meshKind, locators('fe80::/48'), '"fe80::/48" holds link-local'],
  ['one with the unspecified address', meshKind, locators('::/48'), 'unspecified addresses'],
  ['a probe too often', meshKind, probe({ intervalMilliseconds: 9 }), 'pathProbe.intervalMilliseconds', '10'],
  ['a multiplier of 0', meshKind, probe({ detectMultiplier: 0 }), 'pathProbe.detectMultiplier', '1'],
];
test.each(refused)('%s is refused, and the message says where and why', async (_, kind, spec, ...texts) => {
  const refusal = await refusalOf(create(kind, spec));
  for (const text of texts) expect(refusal).toContain(text);
});

const accepted: [what: string, kind: KindDefinition, spec: object][] = [
  [
    'both families',
    siteKind,
    withAssignment({ cidrBlocks: ['100.64.0.0/16', 'fd00::/48'], nodeBlockSizes: { ipv4: 26, ipv6: 64 } }),
  ],
  [
    'a disabled assignment whose pool is too small',
    siteKind,
    withAssignment({ assignmentEnabled: false, cidrBlocks: ['100.64.0.0/24'] }),
  ],
  [
    'intervals as number, numeric text and durations',
    siteKind,
    health({ transmitInterval: '300', receiveInterval: '1m30s' }),
  ],
  ['the shortest and the longest interval', siteKind, health({ transmitInterval: 10, receiveInterval: 4294967 })],
  ['a fraction of a second', siteKind, health({ transmitInterval: '0.5s', receiveInterval: '1.5s' })],
  ['the widest blocks', siteKind, site({ nodeCidrs: ['10.0.0.0/8', 'fd00::/16', '169.255.0.0/16', '1.0.0.0/8'] })],
  ['no masquerading at all', siteKind, site({ nonMasqueradeCIDRs: ['0.0.0.0/0', '::/0'] })],
  ['node names', gatewayPoolKind, pool({ nodeNames: ['n1', 'n2.example.com'] })],
  ['an empty pool type', gatewayPoolKind, pool({ type: '' })],
  ['every protocol', siteKind, site({ tunnelProtocol: 'Auto', tunnelMTU: 9000 })],
  ['a Mesh without a relay', meshKind, {}],
  ['a unique local prefix of locators', meshKind, locators('fd53:ab:cd::/48')],
  ['a global one', meshKind, locators('2001:db8::/32')],
  ['a relay by its name', meshKind, endpoint('relay-1.example.com:3478')],
  [
    'a relay by its address, with TLS',
    meshKind,
    relay({ external: { endpoint: '192.0.2.1:65535', transport: 'tls' } }),
  ],
  [
    'a relay known by its authorities and its key',
    meshKind,
    tls({ caBundle: PEM, staticKey: Buffer.alloc(32, 7).toString('base64') }),
  ],
  [
    'a managed relay with TLS',
    meshKind,
    {
      relay: {
        provider: 'managed',
        managed: { tls: { serverName: 'relay.example.com' } },
        caBundle: PEM,
        staticKey: Buffer.alloc(32, 7).toString('base64'),
      },
    },
  ],
  ['a relay by its IPv6 address', meshKind, endpoint('[2001:db8::1]:443')],
  [
    'a managed relay with all that can be said',
    meshKind,
    {
      relay: {
        mode: 'always',
        provider: 'managed',
        managed: { replicas: 3, serviceType: 'NodePort', port: 443 },
        pathProbe: { intervalMilliseconds: 10, detectMultiplier: 1 },
      },
    },
  ],
  [
    'a negative priority and a regular expression',
    siteKind,
    withAssignment({ priority: -1, nodeRegex: ['^edge-', ''] }),
  ],
];
test.each(accepted)('%s is accepted', async (_, kind, spec) => {
  expect((await create(kind, spec)).metadata.uid).toBeDefined();
});

test('what a Mesh leaves out is filled in', async () => {
  expect(await create(meshKind, managed({}))).toMatchObject({
    spec: {
      relay: { mode: 'auto', provider: 'managed', managed: { replicas: 1, serviceType: 'LoadBalancer', port: 3478 } },
    },
  });
  expect(await create(meshKind, probe({}))).toMatchObject({
    spec: {
      relay: {
        external: { transport: 'tcp' },
        pathProbe: { intervalMilliseconds: 500, detectMultiplier: 3 },
      },
    },
  });
});

test('a name that cannot be a label value is refused', async () => {
  await expect(create(siteKind, site(), 'a'.repeat(64))).rejects.toThrow(
    'metadata.name may have at most 63 characters',
  );
  await create(siteKind, site(), 'a'.repeat(63));
});

test('the largest objects that the limits allow stay within the cost limit of the API server', async () => {
  const blocks = (first: number, count: number) =>
    Array.from({ length: count }, (__, index) => `10.${first}.${index}.0/24`);
  const many = Array.from({ length: 32 }, (__, index) => ({
    cidrBlocks: blocks(index, 64),
    nodeBlockSizes: { ipv4: 28 },
  }));
  const largest = await create(siteKind, { nodeCidrs: blocks(200, 256), podCidrAssignments: many });
  expect(largest.metadata.uid).toBeDefined();
  const nodeNames = Array.from({ length: 1000 }, (__, index) => `n${index}`.padEnd(253, 'x'));
  const widest = await create(gatewayPoolKind, pool({ routedCidrs: blocks(201, 256), nodeNames }));
  expect(widest.metadata.uid).toBeDefined();
});

test('kubectl knows the short names and shows the columns', () => {
  expect(api.kubectl('get', 'st,sns,gp,gpn,spr,sgpa,gpp,msh')).toContain('NODE CIDRS');
});
