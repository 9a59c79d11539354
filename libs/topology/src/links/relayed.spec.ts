import type { Mesh, RelaySpec } from '@unbounded/crds';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { networkOf } from '../explain/forwarding-simulation.ts';
import { planIn } from '../explain/plan-table.ts';
import type { NodePlan } from '../plan.ts';
import { anyCluster } from '../random-cluster.testdata.ts';
import { cluster, gateway, join, keyOf, pool, site, slice, worker } from '../testdata.ts';
import type { TopologyObjects } from '../world/world.ts';

const mesh = (relay: RelaySpec | undefined, name = 'default'): Mesh => ({
  apiVersion: 'net.unbounded-cloud.io/v1alpha1',
  kind: 'Mesh',
  metadata: { name },
  spec: relay === undefined ? {} : { relay },
});
const external: RelaySpec = { provider: 'external', external: { endpoint: 'relay.example.com:3478' } };
const withMesh = (objects: TopologyObjects, relay: RelaySpec | undefined, name?: string): TopologyObjects => ({
  ...objects,
  meshes: [mesh(relay, name)],
});
const relayedPeers = (plan: NodePlan): string[] =>
  plan.wireGuard.flatMap(({ peers }) => peers.filter(({ relay }) => relay !== undefined).map(({ node }) => node));
/** Every gateway can be called from everywhere. */
const allCallable = (objects: TopologyObjects): TopologyObjects => ({
  ...objects,
  gatewayPools: objects.gatewayPools.map((each) => ({
    ...each,
    spec: { ...each.spec, type: 'External' },
    status: {
      nodes: (each.status?.nodes ?? []).map((gateway) => {
        const host = gateway.internalIPs![0]!.split(/[.:]/).at(-1)!;
        return { ...gateway, externalIPs: [`203.0.113.${host}`, `2001:db8::${host}`] };
      }),
    },
  })),
});
const withoutRelay = (plan: NodePlan): NodePlan => {
  const { relay: _, ...rest } = plan;
  const bare = rest.wireGuard.map((wg) => ({ ...wg, peers: wg.peers.map(({ relay: _of, ...peer }) => peer) }));
  return { ...rest, wireGuard: bare };
};

const sites = cluster({ sites: 2, gateways: 1, workers: 1, protocol: 'WireGuard' });

describe('who has a relay', () => {
  test('peers of WireGuard links over external addresses, and nobody inside the LAN', () => {
    const plan = planIn(withMesh(sites, external), 's1-g1');
    expect(plan.wireGuard.flatMap(({ peers }) => peers.map(({ node }) => node)).sort()).toEqual(['s1-w1', 's2-g1']);
    expect(relayedPeers(plan)).toEqual(['s2-g1']);
    expect(plan.wireGuard.flatMap(({ peers }) => peers.flatMap(({ relay }) => relay ?? []))).toEqual([
      { mode: 'auto', intervalMs: 500, detectMultiplier: 3 },
    ]);
    expect(plan.relay).toEqual({ provider: 'external', endpoint: 'relay.example.com:3478', transport: 'tcp' });
  });

  test('what relays are known by comes along: authorities, a key, the name of a managed one', () => {
    const staticKey = keyOf('relay');
    const trusting: RelaySpec = {
      ...external,
      external: { endpoint: 'relay.example.com:3478', transport: 'tls' },
      caBundle: 'PEM',
      staticKey,
    };
    expect(planIn(withMesh(sites, trusting), 's1-g1').relay).toEqual({
      provider: 'external',
      endpoint: 'relay.example.com:3478',
      transport: 'tls',
      caBundle: 'PEM',
      staticKey,
    });
    const named: RelaySpec = { provider: 'managed', managed: { tls: { serverName: 'relay.example.com' } }, staticKey };
    expect(planIn(withMesh(sites, named), 's1-g1').relay).toEqual({
      provider: 'managed',
      serverName: 'relay.example.com',
      staticKey,
    });
  });

  test('a node without such a peer has none', () => {
    const plan = planIn(withMesh(sites, external), 's1-w1');
    expect(relayedPeers(plan)).toEqual([]);
    expect(plan).toEqual(planIn(sites, 's1-w1'));
  });

  test('both ends, where a worker calls a gateway elsewhere; who is called has no endpoint, as without a relay', () => {
    const objects = withMesh(
      {
        ...sites,
        sites: [site(1), site(2)],
        slices: [slice(1, []), slice(2, [worker(2, 1)])],
        gatewayPools: [sites.gatewayPools[0]!],
        assignments: [join('assignments', 'a', { sites: ['s1', 's2'], gatewayPools: ['p1'] })],
        poolPeerings: [],
      },
      external,
    );
    const relay = { mode: 'auto', intervalMs: 500, detectMultiplier: 3 };
    const [atWorker] = planIn(objects, 's2-w1').wireGuard[0]!.peers;
    expect(atWorker).toMatchObject({ node: 's1-g1', endpoint: '203.0.113.111:51820', relay });
    const [atGateway] = planIn(objects, 's1-g1').wireGuard[0]!.peers;
    expect(atGateway).toMatchObject({ node: 's2-w1', relay });
    expect(atGateway).not.toHaveProperty('endpoint');
  });

  test('nobody on peered sites, which share a network', () => {
    const joined = {
      ...sites,
      gatewayPools: [pool('p1', []), pool('p2', [])],
      sitePeerings: [join('sitePeerings', 'lan', { sites: ['s1', 's2'], tunnelProtocol: 'WireGuard' })],
    };
    const plan = planIn(withMesh(joined, external), 's1-w1');
    expect(plan.wireGuard[0]?.peers.map(({ node }) => node)).toEqual(['s2-w1']);
    expect(plan).toEqual(planIn(joined, 's1-w1'));
  });

  test('nobody on a link over external addresses that is not WireGuard', () => {
    const peerings = [join('poolPeerings', 'all', { gatewayPools: ['p1', 'p2'], tunnelProtocol: 'VXLAN' })];
    const open = { ...cluster({ sites: 2, gateways: 1, workers: 1, protocol: 'VXLAN' }), poolPeerings: peerings };
    expect(planIn(open, 's1-g1').tunnels.map(({ node, protocol }) => `${node} ${protocol}`)).toEqual([
      's1-w1 VXLAN',
      's2-g1 VXLAN',
    ]);
    expect(planIn(withMesh(open, external), 's1-g1')).toEqual(planIn(open, 's1-g1'));
  });
});

describe('sites where no gateway can be called from outside', () => {
  const hide = (objects: TopologyObjects): TopologyObjects => ({
    ...objects,
    gatewayPools: objects.gatewayPools.map((each) => ({
      ...each,
      spec: { ...each.spec, type: 'Internal' },
      status: { nodes: (each.status?.nodes ?? []).map((gateway) => ({ ...gateway, externalIPs: [] })) },
    })),
  });
  const hidden = hide(sites);

  test('are not joined without a relay, which is told', () => {
    const { problems, groups } = planIn(hidden, 's1-g1');
    expect(problems.map(({ reason }) => reason)).toEqual(['NoEndpoint']);
    expect(groups).toEqual([]);
  });

  test('meet at the relay: no endpoint at either end, and both keep the way open', () => {
    const relay = { mode: 'auto', intervalMs: 500, detectMultiplier: 3 };
    for (const [own, other] of [
      ['s1-g1', 's2-g1'],
      ['s2-g1', 's1-g1'],
    ] as const) {
      const plan = planIn(withMesh(hidden, external), own);
      const peer = plan.wireGuard.flatMap(({ peers }) => peers).find(({ node }) => node === other);
      expect(peer).toMatchObject({ relay, persistentKeepaliveSeconds: 25 });
      expect(peer).not.toHaveProperty('endpoint');
      expect(plan.problems).toEqual([]);
      expect(plan.relay?.provider).toBe('external');
    }
  });

  test('their workers go to each other by their gateways', () => {
    const { groups } = planIn(withMesh(hidden, external), 's1-w1');
    expect(groups.map(({ name, members }) => [name, members.map(({ node }) => node)])).toEqual([
      ['site s2 IPv4', ['s1-g1']],
    ]);
  });

  test('are joined by a hub that can be called, and not by the relay', () => {
    const three = cluster({ sites: 3, gateways: 1, workers: 1, protocol: 'WireGuard' });
    const [hub, ...spokes] = three.gatewayPools;
    const objects = { ...three, gatewayPools: [hub!, ...hide({ ...three, gatewayPools: spokes }).gatewayPools] };
    for (const [node, plan] of networkOf(withMesh(objects, external)).plans)
      expect(withoutRelay(plan), node).toEqual(planIn(objects, node));
  });

  test('do not route a block into the overlay that holds the relay’s address', () => {
    const [first, second] = hidden.gatewayPools;
    const wide = { ...second!, spec: { ...second!.spec, routedCidrs: ['203.0.112.0/20'] } };
    const relayAt = (endpoint: string): RelaySpec => ({ provider: 'external', external: { endpoint } });
    const problemsWith = (endpoint: string) =>
      planIn(withMesh({ ...hidden, gatewayPools: [first!, wide] }, relayAt(endpoint)), 's1-g1').problems.map(
        ({ reason }) => reason,
      );
    expect(problemsWith('203.0.113.9:3478')).toEqual(['RouteOverlapsUnderlay']);
    expect(problemsWith('[2001:db8::9]:3478')).toEqual([]);
  });

  test('are not joined in cleartext, whatever a peering asks for', () => {
    const poolPeerings = [join('poolPeerings', 'all', { gatewayPools: ['p1', 'p2'], tunnelProtocol: 'VXLAN' })];
    const open = { ...hide(cluster({ sites: 2, gateways: 1, workers: 0, protocol: 'VXLAN' })), poolPeerings };
    const { problems, tunnels } = planIn(withMesh(open, external), 's1-g1');
    expect(problems.map(({ reason }) => reason)).toContain('NoEndpoint');
    expect(tunnels).toEqual([]);
  });

  test('a key that follows is proven over the relay before it is used', () => {
    const next = withMesh(hidden, external);
    const gatewayPools = next.gatewayPools.map((each) => ({
      ...each,
      status: {
        nodes: (each.status?.nodes ?? []).map((gateway) =>
          gateway.name === 's2-g1' ? { ...gateway, wireGuardNextPublicKey: keyOf('next') } : gateway,
        ),
      },
    }));
    const lanes = planIn({ ...next, gatewayPools }, 's1-g1').wireGuard.flatMap(({ peers }) =>
      peers.filter(({ node }) => node === 's2-g1'),
    );
    expect(lanes).toHaveLength(2);
    for (const lane of lanes) expect(lane).toMatchObject({ persistentKeepaliveSeconds: 25 });
  });
});

describe('what the Mesh says', () => {
  const planFor = (relay: RelaySpec | undefined, name?: string) => planIn(withMesh(sites, relay, name), 's1-g1');
  const plain = planIn(sites, 's1-g1');

  test.each([
    ['never', { ...external, mode: 'never' as const }],
    ['no relay', undefined],
  ])('%s: a plan as without a Mesh', (_, relay) => {
    expect(JSON.stringify(planFor(relay))).toBe(JSON.stringify(plain));
  });

  test('a Mesh of another name does not count', () => expect(planFor(external, 'other')).toEqual(plain));

  test('always, TLS and the times of probes go into the plan', () => {
    const plan = planFor({
      mode: 'always',
      provider: 'external',
      external: { endpoint: '[2001:db8::1]:443', transport: 'tls' },
      pathProbe: { intervalMilliseconds: 100, detectMultiplier: 5 },
    });
    expect(plan.relay).toEqual({ provider: 'external', endpoint: '[2001:db8::1]:443', transport: 'tls' });
    const peer = plan.wireGuard.flatMap(({ peers }) => peers).find(({ node }) => node === 's2-g1');
    expect(peer?.relay).toEqual({ mode: 'always', intervalMs: 100, detectMultiplier: 5 });
  });

  test('a managed relay is to be found by the node', () => {
    expect(planFor({ provider: 'managed', managed: {} }).relay).toEqual({ provider: 'managed' });
  });

  test('an external relay that is not named is told, and there is none', () => {
    const { problems, ...plan } = planFor({ provider: 'external' });
    expect(problems).toEqual([
      {
        reason: 'InvalidRelay',
        message:
          'Mesh default spec.relay: provider "external" without its block: write external: {endpoint: "relay.example.com:3478"}, or provider: managed; no relay is used',
      },
    ]);
    expect({ ...plan, problems: [] }).toEqual(plain);
  });
});

describe('any cluster', () => {
  test('where all gateways can be called a relay adds what it says to peers and plan, and changes nothing else', () => {
    fc.assert(
      fc.property(anyCluster.map(allCallable), (objects) => {
        const plain = networkOf({ ...objects, meshes: [] }).plans;
        for (const [node, plan] of networkOf(withMesh(objects, external)).plans) {
          expect(JSON.stringify(withoutRelay(plan)), node).toBe(JSON.stringify(plain.get(node)));
          expect(plan.relay !== undefined).toBe(relayedPeers(plan).length > 0);
        }
      }),
      { numRuns: 60 },
    );
  });

  /** Members of a group, those that are tried first in front. */
  const membersOf = ({ groups }: NodePlan) =>
    new Map(groups.map(({ name, members }) => [name, members.map(({ node, tier }) => ({ node, tier }))]));

  test('what a relay adds to a way stands behind all that there is without one', () => {
    fc.assert(
      fc.property(anyCluster, (objects) => {
        const plain = networkOf({ ...objects, meshes: [] }).plans;
        for (const [node, plan] of networkOf(withMesh(objects, external)).plans) {
          const relayed = membersOf(plan);
          for (const [name, members] of membersOf(plain.get(node)!)) {
            const found = relayed.get(name)!;
            expect(found.slice(0, members.length), `${node}: ${name}`).toEqual(members);
            const last = Math.max(-1, ...members.map(({ tier }) => tier));
            for (const { tier } of found.slice(members.length)) expect(tier, `${node}: ${name}`).toBeGreaterThan(last);
          }
        }
      }),
      { numRuns: 100 },
    );
  });

  test('gateways that meet at the relay stand in for a gateway that can be called, when all of its pool are dead', () => {
    const internal = (index: number): ReturnType<typeof gateway> => {
      const { externalIPs: _, ...rest } = gateway(index, 2);
      return rest;
    };
    const objects: TopologyObjects = {
      ...{ sites: [site(1), site(2)], slices: [slice(1, []), slice(2, [worker(2, 1)])], sitePeerings: [] },
      gatewayPools: [
        pool('outside', [gateway(1, 1)]),
        pool('inside1', [internal(1)], { type: 'Internal' }),
        pool('inside2', [internal(2)], { type: 'Internal' }),
      ],
      assignments: [
        join('assignments', 'both', { sites: ['s1', 's2'], gatewayPools: ['outside', 'inside2'] }),
        join('assignments', 'one', { sites: ['s1'], gatewayPools: ['inside1'] }),
      ],
      poolPeerings: [join('poolPeerings', 'inside', { gatewayPools: ['inside1', 'inside2'] })],
      meshes: [],
    };
    const waysOf = (one: TopologyObjects) => membersOf(planIn(one, 's2-w1')).get('site s1 IPv4');
    expect(waysOf(objects)).toEqual([{ node: 's1-g1', tier: 0 }]);
    expect(waysOf(withMesh(objects, external))).toEqual([
      { node: 's1-g1', tier: 0 },
      { node: 's2-g2', tier: 1 },
    ]);
  });

  test('either end of a link has the relay, or neither', () => {
    fc.assert(
      fc.property(anyCluster, (objects) => {
        const { plans } = networkOf(withMesh(objects, external));
        for (const [node, plan] of plans)
          for (const peer of relayedPeers(plan)) expect(relayedPeers(plans.get(peer)!), peer).toContain(node);
      }),
      { numRuns: 60 },
    );
  });
});
