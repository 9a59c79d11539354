import { containsPrefix, hostPrefix, firstAddress, overlaps, parsePrefix, type Prefix } from '@unbounded/ip';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { failureOf, type Network, networkOf } from './explain/forwarding-simulation.ts';
import { planLinks } from './links/links.plan.ts';
import { anyCluster, anyConnectedCluster } from './random-cluster.testdata.ts';
import { scopesOf } from './links/scopes.ts';
import type { Member, PoolModel as Pool, TopologyObjects, World } from './world/world.ts';

const shuffled = (objects: TopologyObjects): TopologyObjects => ({
  sites: objects.sites.toReversed(),
  slices: objects.slices.toReversed().map((s) => ({ ...s, nodes: (s.nodes ?? []).toReversed() })),
  gatewayPools: objects.gatewayPools
    .toReversed()
    .map((p) => ({ ...p, status: { nodes: (p.status?.nodes ?? []).toReversed() } })),
  sitePeerings: objects.sitePeerings
    .toReversed()
    .map((p) => ({ ...p, spec: { ...p.spec, sites: p.spec.sites.toReversed() } })),
  assignments: objects.assignments.toReversed(),
  poolPeerings: objects.poolPeerings
    .toReversed()
    .map((p) => ({ ...p, spec: { ...p.spec, gatewayPools: p.spec.gatewayPools.toReversed() } })),
  meshes: objects.meshes.toReversed(),
});

const linksOf = ({ world, members }: Network) =>
  new Map([...members].map(([name, member]) => [name, planLinks(world, { member, underlayMtuBytes: 1500 }).links]));

const blockOf = (member: Member, family: 4 | 6): Prefix | undefined =>
  member.podCidrs.find((block) => block.family === family);

/** Worked out from the objects anew, without the planner's distances: can the pods of two workers meet? */
const areConnected = (world: World, a: Member, b: Member, family: 4 | 6): boolean => {
  if (a.site === b.site) return world.sites.get(a.site)!.manageCni;
  const sharing = (x: string, y: string): boolean =>
    x === y || world.sitePeerings.some(({ members }) => members.has(x) && members.has(y));
  if (world.sitePeerings.some(({ mesh, members }) => mesh && members.has(a.site) && members.has(b.site))) return true;
  const all = [...world.pools.values()].filter(({ gateways }) => gateways.length > 0);
  const pools = all
    .map((pool) => ({ ...pool, gateways: pool.gateways.filter((g) => blockOf(g, family)) }))
    .filter(({ gateways }) => gateways.length > 0);
  const isCallableFrom = ({ external, gateways }: Pool, site: string): boolean =>
    external || gateways.some((g) => sharing(g.site, site));
  const isAssigned = ({ name }: Pool, site: string): boolean =>
    world.assignments.some(({ members, pools: named }) => members.has(site) && named.has(name));
  // A relay serves whom nothing else serves, and joins what nothing else joins.
  const needsRelay = (site: string): boolean =>
    world.relay !== undefined && !all.some((pool) => isAssigned(pool, site) && isCallableFrom(pool, site));
  const serving = (site: string) =>
    pools.filter((pool) => isAssigned(pool, site) && (needsRelay(site) || isCallableFrom(pool, site)));
  const isPeered = (x: Pool, y: Pool): boolean =>
    world.poolPeerings.some(({ members }) => members.has(x.name) && members.has(y.name));
  const canMeet = (x: Pool, y: Pool): boolean =>
    x.external || y.external || x.gateways.some((g) => y.gateways.some((h) => sharing(g.site, h.site)));
  const leadsTo = (x: Pool): Set<Pool> => {
    const found = new Set(all.filter(({ name }) => name === x.name));
    for (const from of found) for (const pool of all) if (isPeered(from, pool) && canMeet(from, pool)) found.add(pool);
    return found;
  };
  const isJoined = (x: Pool, y: Pool): boolean =>
    isPeered(x, y) &&
    (canMeet(x, y) || (world.relay !== undefined && ![...leadsTo(x)].some(({ name }) => name === y.name)));
  const reached = new Set(serving(a.site));
  for (const from of reached) for (const pool of pools) if (isJoined(from, pool)) reached.add(pool);
  return serving(b.site).some((pool) => reached.has(pool));
};

describe('any cluster', () => {
  test('the order of objects, and of names and nodes in them, changes nothing', () => {
    fc.assert(
      fc.property(anyCluster, (objects) => {
        expect(networkOf(shuffled(objects)).plans).toEqual(networkOf(objects).plans);
      }),
      { numRuns: 60 },
    );
  });

  test('both ends of every link have it, with the same protocol, family, MTU and probes', () => {
    fc.assert(
      fc.property(anyCluster, (objects) => {
        const network = networkOf(objects);
        const links = linksOf(network);
        for (const [node, own] of links) {
          for (const link of own) {
            const back = links.get(link.peer.name)!.find(({ peer }) => peer.name === node);
            const { protocol, family, mtuBytes, health, localIp, remoteIp } = link;
            expect(back, `${node} - ${link.peer.name}`).toMatchObject({ protocol, family, mtuBytes, health });
            expect([back!.localIp, back!.remoteIp]).toEqual([remoteIp, localIp]);
          }
          for (const probe of network.plans.get(node)!.probes) {
            const { intervalMs, detectMultiplier, family, address, localAddress } = probe;
            const mirrored = { node, family, intervalMs, detectMultiplier };
            expect(network.plans.get(probe.node)!.probes).toContainEqual(
              expect.objectContaining({ ...mirrored, address: localAddress, localAddress: address }),
            );
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  test('a WireGuard endpoint is where the other end listens for this node', () => {
    fc.assert(
      fc.property(anyCluster, (objects) => {
        const { plans, members } = networkOf(objects);
        for (const [node, plan] of plans) {
          for (const { endpoint, node: peer } of plan.wireGuard.flatMap(({ peers }) => peers)) {
            if (endpoint === undefined) continue;
            const port = Number(endpoint.slice(endpoint.lastIndexOf(':') + 1));
            const facing = plans.get(peer)!.wireGuard.find(({ listenPort }) => listenPort === port);
            const keys = facing?.peers.map(({ publicKey }) => publicKey) ?? [];
            expect(keys, `${node} -> ${peer}`).toContain(members.get(node)!.publicKey);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  test('within a WireGuard interface no two peers share an address, and a key stands on one interface', () => {
    fc.assert(
      fc.property(anyCluster, (objects) => {
        for (const { wireGuard } of networkOf(objects).plans.values()) {
          const keys = wireGuard.flatMap(({ peers }) => peers.map(({ publicKey }) => publicKey));
          expect(new Set(keys).size).toBe(keys.length);
          for (const { peers } of wireGuard) {
            const owned = peers.flatMap(({ allowedIps }, owner) =>
              allowedIps.map((text) => ({ owner, prefix: parsePrefix(text) })),
            );
            for (const a of owned)
              for (const b of owned) if (a.owner !== b.owner) expect(overlaps(a.prefix, b.prefix)).toBe(false);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  test('a link that any governing object makes WireGuard is nothing else at either end', () => {
    fc.assert(
      fc.property(anyCluster, (objects) => {
        const { world, members, plans } = networkOf(objects);
        for (const [node, plan] of plans) {
          const own = members.get(node)!;
          const hops = [
            ...plan.blocks.flatMap(({ to }) => (typeof to === 'object' && 'nextHop' in to ? [to.nextHop] : [])),
            ...plan.groups.flatMap((group) => group.members),
          ];
          for (const hop of hops) {
            const scopes = scopesOf(world, own, members.get(hop.node)!);
            if (scopes.some(({ protocol }) => protocol === 'WireGuard')) expect(hop.protocol).toBe('WireGuard');
          }
          const plain = plan.blocks.flatMap(({ to }) =>
            typeof to === 'object' && 'gateways' in to ? to.gateways : [],
          );
          for (const peer of members.values()) {
            if (!scopesOf(world, own, peer).some(({ protocol }) => protocol === 'WireGuard')) continue;
            expect(plain.filter((ip) => peer.internalIps.includes(ip))).toEqual([]);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  test('removing a node leaves every other node its own blocks and addresses', () => {
    fc.assert(
      fc.property(anyCluster, fc.nat(), (objects, which) => {
        const before = networkOf(objects);
        const gone = [...before.plans.keys()][which % Math.max(1, before.plans.size)];
        const without = networkOf({
          ...objects,
          slices: objects.slices.map((s) => ({ ...s, nodes: (s.nodes ?? []).filter(({ name }) => name !== gone) })),
          gatewayPools: objects.gatewayPools.map((p) => ({
            ...p,
            status: { nodes: (p.status?.nodes ?? []).filter(({ name }) => name !== gone) },
          })),
        });
        for (const [node, plan] of without.plans) {
          const { podCidrs, overlayAddresses, underlayIp, mtuBytes: _, ...rest } = before.plans.get(node)!;
          expect(plan).toMatchObject({ podCidrs, overlayAddresses, underlayIp, role: rest.role });
          expect(JSON.stringify({ ...plan, problems: [] })).not.toContain(`"${gone}"`);
        }
      }),
      { numRuns: 40 },
    );
  });

  test('every group that a block names is there, and no block lies inside the node’s own', () => {
    fc.assert(
      fc.property(anyCluster, (objects) => {
        for (const plan of networkOf(objects).plans.values()) {
          const groups = new Set(plan.groups.map(({ name }) => name));
          for (const { to } of plan.blocks)
            if (typeof to === 'object' && 'group' in to) expect(groups).toContain(to.group);
          const own = plan.podCidrs.map(parsePrefix);
          for (const { prefix } of plan.blocks)
            for (const block of own) expect(containsPrefix(block, parsePrefix(prefix))).toBe(false);
        }
      }),
      { numRuns: 40 },
    );
  });
});

test('what the objects connect arrives without a loop, and nothing else does', () => {
  fc.assert(
    fc.property(anyConnectedCluster, (objects) => {
      const network = networkOf(objects);
      for (const from of network.world.workers) {
        for (const to of network.world.workers) {
          for (const family of [4, 6] as const) {
            const [source, target] = [blockOf(from, family), blockOf(to, family)];
            if (from === to || !source || !target) continue;
            const [packetSource, packetTarget] = [hostPrefix(firstAddress(source)), hostPrefix(firstAddress(target))];
            const failure = failureOf(network, [from.name], packetTarget, packetSource);
            const name = `${from.name} -> ${to.name} IPv${family}`;
            if (areConnected(network.world, from, to, family)) expect(failure, name).toBeUndefined();
            else if (from.site !== to.site) expect(failure, name).toBeDefined();
          }
        }
      }
    }),
    { numRuns: 100 },
  );
});
