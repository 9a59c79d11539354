import { overlaps, parsePrefix } from '@unbounded/ip';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Network, networkOf } from '../explain/forwarding-simulation.ts';
import { lanesOf } from './lanes.ts';
import { planLinks } from './links.plan.ts';
import { planIn } from '../explain/plan-table.ts';
import { anyCluster } from '../random-cluster.testdata.ts';
import { cluster, keyOf } from '../testdata.ts';
import type { NodePlan } from '../plan.ts';
import type { TopologyObjects } from '../world/world.ts';

interface Keys {
  readonly generation: number;
  readonly isRotating: boolean;
}

/** The same cluster whose nodes have exchanged their keys so many times, or are about to. */
const withKeys = (objects: TopologyObjects, keysOf: (node: string) => Keys): TopologyObjects => {
  const changed = <T extends { readonly name: string }>(node: T): T => {
    const { generation, isRotating } = keysOf(node.name);
    return {
      ...node,
      wireGuardKeyGeneration: generation,
      ...(isRotating ? { wireGuardNextPublicKey: keyOf(`next${node.name.replaceAll('-', '')}`) } : {}),
    };
  };
  return {
    ...objects,
    slices: objects.slices.map((slice) => ({ ...slice, nodes: (slice.nodes ?? []).map(changed) })),
    gatewayPools: objects.gatewayPools.map((pool) => ({
      ...pool,
      status: { ...pool.status, nodes: (pool.status?.nodes ?? []).map(changed) },
    })),
  };
};

const someKeys = fc.array(fc.record({ generation: fc.nat(5), isRotating: fc.boolean() }), {
  minLength: 7,
  maxLength: 7,
});
const rotatingCluster = fc.tuple(anyCluster, someKeys).map(([objects, keys]) => {
  const sum = (node: string): number => Array.from(node).reduce((total, letter) => total + letter.codePointAt(0)!, 0);
  return withKeys(objects, (node) => keys[sum(node) % keys.length]!);
});

const lanesIn = ({ world, members }: Network) =>
  [...members].flatMap(([node, member]) => {
    const local = { member, underlayMtuBytes: 1500 };
    return planLinks(world, local).links.map((link) => ({ node, peer: link.peer.name, lanes: lanesOf(local, link) }));
  });

describe('any cluster whose nodes exchange keys', () => {
  test('has the same lanes at both ends of a link, each with the ports of the other crossed', () => {
    fc.assert(
      fc.property(rotatingCluster, (objects) => {
        const all = lanesIn(networkOf(objects));
        for (const { node, peer, lanes } of all) {
          const back = all.find((other) => other.node === peer && other.peer === node)!;
          const mirrored = back.lanes.map(({ listenPort, remotePort, ownGeneration, peerGeneration }) => ({
            listenPort: remotePort,
            remotePort: listenPort,
            ownGeneration: peerGeneration,
            peerGeneration: ownGeneration,
          }));
          expect(lanes.length).toBe(mirrored.length);
          for (const lane of mirrored) expect(lanes).toContainEqual(expect.objectContaining(lane));
          for (const { listenPort } of lanes) {
            expect(listenPort).toBeGreaterThanOrEqual(51_820);
            expect(listenPort).toBeLessThanOrEqual(65_419);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  test('has interfaces of one key each, on which no two peers share an address and no node stands twice', () => {
    fc.assert(
      fc.property(rotatingCluster, (objects) => {
        for (const { wireGuard } of networkOf(objects).plans.values()) {
          expect(new Set(wireGuard.map(({ listenPort }) => listenPort)).size).toBe(wireGuard.length);
          for (const { peers } of wireGuard) {
            expect(new Set(peers.map(({ node }) => node)).size).toBe(peers.length);
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

  test('takes the same prefixes from a peer on every lane', () => {
    fc.assert(
      fc.property(rotatingCluster, (objects) => {
        for (const { wireGuard } of networkOf(objects).plans.values()) {
          const allowed = new Map<string, string>();
          for (const { node, allowedIps } of wireGuard.flatMap(({ peers }) => peers)) {
            expect(allowedIps.join()).toBe(allowed.get(node) ?? allowedIps.join());
            allowed.set(node, allowedIps.join());
          }
        }
      }),
      { numRuns: 40 },
    );
  });
});

const mesh = cluster({ sites: 1, gateways: 0, workers: 2, protocol: 'WireGuard' });
const sendsBy = (plan: NodePlan): string | undefined => {
  const to = plan.blocks[0]?.to;
  return typeof to === 'object' && 'nextHop' in to && 'device' in to.nextHop ? to.nextHop.device : undefined;
};
const interfacesOf = ({ wireGuard }: NodePlan): string[] =>
  wireGuard.map(
    ({ name, keyGeneration = 0, peers }) =>
      `${name} key ${keyGeneration} to ${peers[0]!.endpoint} every ${peers[0]!.persistentKeepaliveSeconds ?? '-'}`,
  );

describe('two nodes of a mesh', () => {
  const first = { generation: 0, isRotating: false };
  const rotating = withKeys(mesh, (node) => (node === 's1-w1' ? { generation: 0, isRotating: true } : first));

  test('have a second lane while one exchanges its key; what is not established is called, and not sent by', () => {
    const plan = planIn(rotating, 's1-w1');
    expect(interfacesOf(plan)).toEqual([
      'wg51820 key 0 to 10.1.0.32:51820 every -',
      'wg58620 key 1 to 10.1.0.32:55220 every 25',
    ]);
    expect(sendsBy(plan)).toBe('wg51820');
    expect(interfacesOf(planIn(rotating, 's1-w2'))).toEqual([
      'wg51820 key 0 to 10.1.0.31:51820 every -',
      'wg55220 key 0 to 10.1.0.31:58620 every 25',
    ]);
  });

  test('send by the newest established lane, and keep none of them alive without need', () => {
    const plan = planIn(rotating, 's1-w1', { established: new Set([`wg58620 ${keyOf('s1w2')}`]) });
    expect(sendsBy(plan)).toBe('wg58620');
    expect(interfacesOf(plan).map((text) => text.slice(-1))).toEqual(['-', '-']);
    const wrongPeer = planIn(rotating, 's1-w1', { established: new Set([`wg58620 ${keyOf('other')}`]) });
    expect(sendsBy(wrongPeer)).toBe('wg51820');
  });

  test('have a single lane again afterwards, on ports that follow from the generations', () => {
    const after = withKeys(mesh, (node) => (node === 's1-w1' ? { generation: 1, isRotating: false } : first));
    expect(interfacesOf(planIn(after, 's1-w1'))).toEqual(['wg58620 key 1 to 10.1.0.32:55220 every -']);
    const twice = withKeys(mesh, (node) => (node === 's1-w1' ? { generation: 2, isRotating: false } : first));
    expect(interfacesOf(planIn(twice, 's1-w1'))).toEqual(['wg51820 key 2 to 10.1.0.32:51820 every -']);
  });

  test('have four lanes while both exchange their keys', () => {
    const both = withKeys(mesh, () => ({ generation: 3, isRotating: true }));
    expect(planIn(both, 's1-w1').wireGuard.map(({ name, keyGeneration }) => [name, keyGeneration])).toEqual([
      ['wg51820', 4],
      ['wg55220', 4],
      ['wg58620', 3],
      ['wg62020', 3],
    ]);
  });
});

test('an end that nobody can call keeps the way open on the lane by which it sends', () => {
  const two = cluster({ sites: 2, gateways: 1, workers: 0 });
  const [p1, p2] = two.gatewayPools;
  const hidden = { ...p2!, spec: { ...p2!.spec, type: 'Internal' as const } };
  const objects = withKeys({ ...two, gatewayPools: [p1!, hidden] }, () => ({ generation: 0, isRotating: true }));
  const established = new Set([`wg58631 ${keyOf('s1g1')}`]);
  const shown = (node: string): (number | undefined)[] =>
    planIn(objects, node, { established }).wireGuard.map(({ peers }) => peers[0]!.persistentKeepaliveSeconds);
  // s2-g1 listens on 51831 and above: (0,0) is silent, (0,1) is called, (1,0) is sent by, (1,1) is called.
  expect(shown('s2-g1')).toEqual([undefined, 25, 25, 25]);
  expect(shown('s1-g1')).toEqual([undefined, undefined, undefined, undefined]);
});
