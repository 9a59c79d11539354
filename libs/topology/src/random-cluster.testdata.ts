import { type Gateway, type Mesh, NODE_FEATURES, type SiteNode } from '@unbounded/crds';
import fc from 'fast-check';
import { join, keyOf, pool, site, slice } from './testdata.ts';
import type { TopologyObjects } from './world/world.ts';

/** Clusters of any shape, for property tests: site N has 10.N.0.0/24 and fd00:N::/64, pods 100.(64+N).0.0/16 and fd64:N::/32. */

const ABILITIES = ['VXLAN', 'GENEVE', 'IPIP', 'None', 'WireGuard'] as const;
type Families = '4' | '6' | '46';

const families = fc.constantFrom<Families>('4', '6', '46');
const indexes = fc.uniqueArray(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 4 });
const enabled = fc.constantFrom(true, true, true, false, undefined);
const health = fc.option(
  fc.record({
    enabled: fc.boolean(),
    transmitInterval: fc.constantFrom(100, '250ms', '2s'),
    detectMultiplier: fc.integer({ min: 1, max: 5 }),
  }),
  { nil: undefined },
);

/** What joins may ask for: unencrypted protocols need addresses at both ends, which not every random link has. */
const protocolOf = (encrypted: boolean) =>
  encrypted
    ? fc.constantFrom(undefined, 'Auto', 'WireGuard')
    : fc.constantFrom(undefined, 'Auto', 'WireGuard', 'VXLAN', 'GENEVE', 'IPIP', 'None');

const shapeOf = (encryptedJoins: boolean) => {
  const settings = { enabled, tunnelProtocol: protocolOf(encryptedJoins), healthCheckSettings: health };
  return fc.record({
    underlay: families,
    sites: fc.array(
      fc.record({
        overlay: families,
        workers: fc.integer({ min: 0, max: 2 }),
        protocol: fc.constantFrom(undefined, 'Auto', 'WireGuard', 'VXLAN', 'GENEVE', 'IPIP'),
        foreignCni: fc.constantFrom(false, false, false, true),
        health,
      }),
      { minLength: 1, maxLength: 5 },
    ),
    pools: fc.array(
      fc.record({
        site: fc.nat(4),
        elsewhere: fc.nat(4),
        gateways: fc.integer({ min: 0, max: 3 }),
        internal: fc.constantFrom(false, false, true),
        routed: fc.boolean(),
        assigned: indexes,
        protocol: protocolOf(encryptedJoins),
        health,
      }),
      { maxLength: 5 },
    ),
    sitePeerings: fc.array(fc.record({ ...settings, members: indexes, meshNodes: fc.boolean() }), { maxLength: 2 }),
    poolPeerings: fc.array(fc.record({ ...settings, members: indexes }), { maxLength: 4 }),
    relay: fc.boolean(),
    assignment: fc.record({ tunnelProtocol: protocolOf(encryptedJoins), healthCheckSettings: health }),
  });
};
type Shape = ReturnType<typeof shapeOf> extends fc.Arbitrary<infer T> ? T : never;

const MESH_WITH_RELAY: Mesh = {
  apiVersion: 'net.unbounded-cloud.io/v1alpha1',
  kind: 'Mesh',
  metadata: { name: 'default' },
  spec: { relay: { provider: 'external', external: { endpoint: 'relay.example.com:3478' } } },
};

const pick = (which: Families, v4: string, v6: string): string[] => [
  ...(which.includes('4') ? [v4] : []),
  ...(which.includes('6') ? [v6] : []),
];

const nodeOf = (shape: Shape, siteIndex: number, name: string, host: number): SiteNode => {
  const n = siteIndex + 1;
  return {
    name,
    wireGuardPublicKey: keyOf(name.replaceAll('-', '')),
    internalIPs: pick(shape.underlay, `10.${n}.0.${host}`, `fd00:${n}::${host}`),
    podCIDRs: pick(shape.sites[siteIndex]!.overlay, `100.${64 + n}.${host}.0/24`, `fd64:${n}:${host}::/64`),
    tunnelProtocols: [...ABILITIES],
  };
};

const gatewaysOf = (shape: Shape, index: number): Gateway[] => {
  const { site: home, elsewhere, gateways, internal } = shape.pools[index]!;
  return Array.from({ length: gateways }, (_, i) => {
    // An Internal pool's gateways are in one site: each can link with the same sites.
    const siteIndex = (i === 2 && !internal ? elsewhere : home) % shape.sites.length;
    const host = 100 + 10 * index + i;
    return {
      ...nodeOf(shape, siteIndex, `p${index}-g${i}`, host),
      wireGuardPublicKey: keyOf(`p${index}g${i}`),
      siteName: `s${siteIndex + 1}`,
      gatewayWireguardPort: 52000 + 10 * index + i,
      features: [...NODE_FEATURES],
      ...(internal ? {} : { externalIPs: [`203.0.113.${host}`, `2001:db8::${host}`] }),
    };
  });
};

const objectsOf = (shape: Shape): TopologyObjects => {
  const siteNames = (members: readonly number[]): string[] =>
    members.filter((i) => i < shape.sites.length).map((i) => `s${i + 1}`);
  const poolNames = (members: readonly number[]): string[] =>
    members.filter((i) => i < shape.pools.length).map((i) => `p${i}`);
  return {
    sites: shape.sites.map(({ overlay, protocol, foreignCni, health: probing }, i) => {
      const base = site(i + 1);
      const blocks = pick(overlay, `100.${65 + i}.0.0/16`, `fd64:${i + 1}::/32`);
      const nodeCidrs = pick(shape.underlay, `10.${i + 1}.0.0/24`, `fd00:${i + 1}::/64`);
      const spec = { nodeCidrs, podCidrAssignments: [{ cidrBlocks: blocks }], manageCniPlugin: !foreignCni };
      const settings = { tunnelProtocol: protocol, healthCheckSettings: probing };
      return { ...base, spec: { ...spec, ...settings } } as typeof base;
    }),
    slices: shape.sites.map(({ workers }, i) =>
      slice(
        i + 1,
        Array.from({ length: workers }, (_, w) => nodeOf(shape, i, `s${i + 1}-w${w}`, 30 + w)),
      ),
    ),
    gatewayPools: shape.pools.map(({ internal, routed, protocol, health: probing }, i) =>
      pool(`p${i}`, gatewaysOf(shape, i), {
        type: internal ? 'Internal' : 'External',
        ...(routed ? { routedCidrs: [`192.168.${i % 2}.0/24`] } : {}),
        tunnelProtocol: protocol,
        healthCheckSettings: probing,
      }),
    ),
    sitePeerings: shape.sitePeerings.map(({ members, ...spec }, i) =>
      join('sitePeerings', `sp${i}`, { ...spec, sites: siteNames(members) }),
    ),
    assignments: shape.pools.map(({ assigned }, i) =>
      join('assignments', `a${i}`, { ...shape.assignment, sites: siteNames(assigned), gatewayPools: [`p${i}`] }),
    ),
    meshes: shape.relay ? [MESH_WITH_RELAY] : [],
    poolPeerings: shape.poolPeerings.map(({ members, ...spec }, i) =>
      join('poolPeerings', `pp${i}`, { ...spec, gatewayPools: poolNames(members) }),
    ),
  };
};

/** Any cluster: any protocol anywhere. */
export const anyCluster: fc.Arbitrary<TopologyObjects> = shapeOf(false).map(objectsOf);

/** Any cluster whose joins keep to what every link can do, so that whatever they join is connected. */
export const anyConnectedCluster: fc.Arbitrary<TopologyObjects> = shapeOf(true).map(objectsOf);
