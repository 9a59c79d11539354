import { NODE_FEATURES, type TunnelProtocol } from '@unbounded/crds';
import {
  containsPrefix,
  firstAddress,
  formatPrefix,
  hostPrefix,
  parseAddress,
  parsePrefix,
  type Prefix,
} from '@unbounded/ip';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { servingPools } from './distances.ts';
import { accepts, failureOf, type Network, networkOf } from '../explain/forwarding-simulation.ts';
import { planIn } from '../explain/plan-table.ts';
import { anyConnectedCluster } from '../random-cluster.testdata.ts';
import { networkSites } from '../world/reach.ts';
import { cluster, gateway, inFamilies, pool, worker } from '../testdata.ts';
import { planTransition } from './transition.testdata.ts';
import { withoutProtected } from './kept-plan.ts';
import type { BlockPlan, NodePlan } from '../plan.ts';
import type { Member, TopologyObjects } from '../world/world.ts';

const SLOW_MS = 60_000;

/** With agents of this version on some gateways. */
const withFeatures = (objects: TopologyObjects, isNew: (gateway: string) => boolean = () => true): TopologyObjects => ({
  ...objects,
  gatewayPools: objects.gatewayPools.map((one) => ({
    ...one,
    status: {
      nodes: (one.status?.nodes ?? []).map((node) =>
        isNew(node.name) ? { ...node, features: [...NODE_FEATURES] } : node,
      ),
    },
  })),
});
const clusterOf = (protocol?: TunnelProtocol): TopologyObjects =>
  withFeatures(cluster({ sites: 2, gateways: 2, workers: 2, ...(protocol ? { protocol } : {}) }));

const prefixesOf = (plan: NodePlan, ...uses: readonly BlockPlan['use'][]): string[] =>
  plan.blocks.filter(({ use }) => use !== undefined && uses.includes(use)).map(({ prefix }) => prefix);
/** To whom what came out of the overlay goes on, by its node's tunnel. */
const transitOf = (plan: NodePlan): string[] => prefixesOf(plan, 'transit');
/** Whose addresses may come out of their tunnels. */
const acceptedOf = (plan: NodePlan): string[] => prefixesOf(plan, 'transit', 'accepted');
const OTHERS = ['10.1.0.22/32', '10.1.0.31/32', '10.1.0.32/32'];
const host = (text: string): Prefix => hostPrefix(parseAddress(text));

describe('at a gateway', () => {
  test('what came out of the overlay for a node of its network goes on by that node’s tunnel', () => {
    const plan = planIn(clusterOf('VXLAN'), 's1-g1');
    expect(transitOf(plan)).toEqual(OTHERS);
    const near = plan.blocks.filter(({ use }) => use === 'transit');
    expect(near.map(({ to }) => to)).toMatchObject([
      { nextHop: { node: 's1-g2', protocol: 'VXLAN', remoteIp: '10.1.0.22' } },
      { nextHop: { node: 's1-w1', protocol: 'VXLAN', remoteIp: '10.1.0.31' } },
      { nextHop: { node: 's1-w2', protocol: 'VXLAN', remoteIp: '10.1.0.32' } },
    ]);
  });

  test('over WireGuard the peer’s allowed addresses say whose it is', () => {
    const plan = planIn(clusterOf('WireGuard'), 's1-g1');
    const allowed = Object.fromEntries(
      plan.wireGuard.flatMap(({ peers }) => peers.map(({ node, allowedIps }) => [node, allowedIps])),
    );
    expect(allowed['s1-w1']).toEqual(['10.1.0.31/32', '100.65.31.0/24']);
    expect(allowed['s1-w2']).toEqual(['10.1.0.32/32', '100.65.32.0/24']);
    expect(transitOf(plan)).toEqual(OTHERS);
  });

  test('in either family that its pods and theirs have', () => {
    const transits = (overlay: '4' | '6' | '46') =>
      transitOf(planIn(inFamilies(clusterOf('VXLAN'), overlay, '46'), 's1-g1'));
    expect(transits('46')).toEqual([
      ...['10.1.0.22/32', '10.1.0.31/32', '10.1.0.32/32'],
      ...['fd00:1::22/128', 'fd00:1::31/128', 'fd00:1::32/128'],
    ]);
    expect(transits('6')).toEqual(['fd00:1::22/128', 'fd00:1::31/128', 'fd00:1::32/128']);
  });

  test('its own packets to them, which carry tunnels, have no such route, and its pods go as the node', () => {
    const plan = planIn(clusterOf('VXLAN'), 's1-g1');
    const routed = [
      ...plan.blocks.filter(({ use }) => use === undefined).map(({ prefix }) => prefix),
      ...plan.contained,
    ];
    expect(routed.filter((prefix) => containsPrefix(parsePrefix(prefix), host('10.1.0.31')))).toEqual([]);
    expect(plan.masquerade.exceptTo.filter((prefix) => prefix.startsWith('10.1.'))).toEqual([]);
  });

  test('inside a site without tunnels they are reached by the LAN, as the node', () => {
    const plan = planIn(clusterOf('None'), 's1-g1');
    expect(acceptedOf(plan)).toEqual([]);
  });

  test('a path that carries less has its MTU', () => {
    const pathMtuBytes = new Map([['s1-w1', 1300]]);
    const plan = planIn(clusterOf('VXLAN'), 's1-g1', { pathMtuBytes });
    expect(plan.blocks).toContainEqual(
      expect.objectContaining({ prefix: '10.1.0.31/32', use: 'transit', mtuBytes: 1300 }),
    );
  });

  test('an address that the gateway itself needs is left out, unless the node’s tunnel ends there', () => {
    const claiming = (...internalIPs: string[]): TopologyObjects => {
      const objects = clusterOf('VXLAN');
      const [own, far] = objects.slices;
      return { ...objects, slices: [{ ...own!, nodes: [{ ...worker(1, 1), internalIPs }, worker(1, 2)] }, far!] };
    };
    const protectedAddresses = [{ address: '10.1.0.2', role: 'an address of the API server' }];
    const near = (...internalIPs: string[]) =>
      acceptedOf(planIn(claiming(...internalIPs), 's1-g1', { protectedAddresses }));
    expect(near('10.1.0.31', '10.1.0.2')).toEqual(['10.1.0.22/32', '10.1.0.31/32', '10.1.0.32/32']);
    expect(near('10.1.0.31', '10.1.0.21')).toEqual(['10.1.0.22/32', '10.1.0.31/32', '10.1.0.32/32']);
    expect(near('10.1.0.2')).toEqual(['10.1.0.2/32', '10.1.0.22/32', '10.1.0.32/32']);
  });

  test('a change between unencrypted protocols moves them with the rest', () => {
    const [before, after] = (['VXLAN', 'GENEVE'] as const).map((protocol) => planIn(clusterOf(protocol), 's1-g1'));
    const nextOf = ({ blocks }: NodePlan): unknown[] =>
      blocks.filter(({ use }) => use === 'transit').map(({ prefix, to }) => [prefix, to]);
    expect(nextOf(planTransition(before!, after!, 'receive'))).toEqual(nextOf(before!));
    expect(nextOf(planTransition(before!, after!, 'send'))).toEqual(nextOf(after!));
  });

  test('a kept plan keeps them: they are no addresses that it routes', () => {
    const plan = planIn(clusterOf('VXLAN'), 's1-g1');
    expect(withoutProtected(plan, [{ address: '10.1.0.2', role: 'an address of the API server' }])).toBe(plan);
  });
});

describe('while agents of an earlier version run', () => {
  const objects = cluster({ sites: 2, gateways: 2, workers: 2, protocol: 'VXLAN' });

  test('nothing goes by the tunnels until all gateways that may bring the answers take them', () => {
    for (const isNew of [() => false, (name: string) => name === 's1-g1', (name: string) => name.startsWith('s2')])
      expect(transitOf(planIn(withFeatures(objects, isNew), 's1-g1'))).toEqual([]);
    const both = withFeatures(objects, (name) => name === 's1-g2');
    expect(transitOf(planIn(both, 's1-g1'))).toEqual(OTHERS);
  });

  test('the answers are taken at once', () => {
    expect(acceptedOf(planIn(objects, 's1-g1'))).toEqual(OTHERS);
  });

  test('a second pool that serves the site is asked too', () => {
    const second = (features: string[]): TopologyObjects => ({
      ...withFeatures(objects),
      gatewayPools: [...withFeatures(objects).gatewayPools, pool('p9', [{ ...gateway(1, 9), features }])],
      assignments: [
        ...objects.assignments,
        { ...objects.assignments[0]!, metadata: { name: 'a9' }, spec: { sites: ['s1'], gatewayPools: ['p9'] } },
      ],
    });
    expect(transitOf(planIn(second([]), 's1-g1'))).toEqual([]);
    expect(transitOf(planIn(second([...NODE_FEATURES]), 's1-g1'))).toEqual(OTHERS);
  });

  test('what is named of a later version means nothing', () => {
    const later = withFeatures(objects);
    const named = later.gatewayPools.map((one) => ({
      ...one,
      status: { nodes: (one.status?.nodes ?? []).map((node) => ({ ...node, features: ['later'] })) },
    }));
    expect(transitOf(planIn({ ...later, gatewayPools: named }, 's1-g1'))).toEqual([]);
  });
});

const podOf = ({ podCidrs }: Member, family: 4 | 6): Prefix | undefined => {
  const block = podCidrs.find((own) => own.family === family);
  return block && hostPrefix(firstAddress(block));
};
const addressOf = ({ nodeAddresses }: Member, family: 4 | 6): Prefix | undefined =>
  nodeAddresses.map((text) => host(text)).find((prefix) => prefix.family === family);

interface Flow {
  readonly from: Member;
  readonly to: Member;
  readonly pod: Prefix;
  readonly address: Prefix;
}

/** From pods of workers to the addresses of nodes of other networks, as far as pods of both meet. */
const flowsOf = (network: Network): Flow[] => {
  const { world, members } = network;
  return world.workers.flatMap((from) =>
    [...members.values()].flatMap((to) =>
      ([4, 6] as const).flatMap((family): Flow[] => {
        const [pod, address, peer] = [podOf(from, family), addressOf(to, family), podOf(to, family)];
        const isServed = to.pool === undefined || servingPools(world, to.site).includes(to.pool);
        if (!pod || !address || !peer || !isServed || networkSites(world, from.site).has(to.site)) return [];
        return failureOf(network, [from.name], peer, pod) === undefined ? [{ from, to, pod, address }] : [];
      }),
    ),
  );
};

const areLinked = ({ plans }: Network, a: string, b: string): boolean =>
  plans.get(a)!.probes.some(({ node }) => node === b);

/** Gateways that serve the node's site and have no link with it, from which only the LAN leads there. */
const strangersOf = (network: Network, { to }: Flow): string[] =>
  servingPools(network.world, to.site)
    .flatMap((name) => network.world.pools.get(name)!.gateways.map((member) => member.name))
    .filter((name) => name !== to.name && !areLinked(network, name, to.name));

/** In any cluster, and in one that certainly has what is looked for. */
const inClusters = (check: (network: Network) => number): void => {
  fc.assert(
    fc.property(anyConnectedCluster, (objects) => void check(networkOf(objects))),
    { numRuns: 100 },
  );
  for (const protocol of ['VXLAN', 'WireGuard'] as const)
    expect(check(networkOf(clusterOf(protocol)))).toBeGreaterThan(0);
};

test(
  'every pod reaches the nodes of other networks by whatever gateways, and they it, with their own addresses',
  () => {
    inClusters((network) => {
      const flows = flowsOf(network).filter((flow) => strangersOf(network, flow).length === 0);
      for (const { from, to, pod, address } of flows) {
        const name = `${from.name} (${formatPrefix(pod)}) and ${to.name} (${formatPrefix(address)})`;
        expect(failureOf(network, [from.name], address, pod), name).toBeUndefined();
        expect(failureOf(network, [to.name], pod, address), `${name}: answers`).toBeUndefined();
      }
      return flows.filter(({ to }) => to.pool !== undefined).length;
    });
  },
  SLOW_MS,
);

interface Detour {
  readonly gateway: string;
  readonly by: string;
  readonly source: Prefix;
  readonly target: Prefix;
}

/** By which other gateways of its pool each one that a node enters by can hand packets on. */
const detoursOf = ({ plans, members, world }: Network, from: Member, to: Member, family: 4 | 6): [string, string][] =>
  (from.pool === undefined ? servingPools(world, from.site) : [])
    .flatMap((name) => world.pools.get(name)!.gateways)
    .flatMap(({ name, pool: own }) =>
      (plans.get(name)?.groups ?? [])
        .filter((group) => group.site === to.site && group.family === family)
        .flatMap((group) => group.members)
        .filter(({ node }) => node !== to.name && members.get(node)!.pool === own)
        .map(({ node }): [string, string] => [name, node]),
    );

test(
  'what a gateway hands to another of its pool arrives too, there and back',
  () => {
    inClusters((network) => {
      const detours = flowsOf(network)
        .filter((flow) => flow.to.pool === undefined && strangersOf(network, flow).length === 0)
        .flatMap(({ from, to, pod, address }): Detour[] => [
          ...detoursOf(network, from, to, pod.family).map(([gateway, by]) => ({
            ...{ gateway, by },
            ...{ source: pod, target: address },
          })),
          ...detoursOf(network, to, from, pod.family).map(([gateway, by]) => ({
            ...{ gateway, by },
            ...{ source: address, target: pod },
          })),
        ]);
      for (const { gateway: from, by, source, target } of detours) {
        const what = `${from} > ${by}: ${formatPrefix(source)} > ${formatPrefix(target)}`;
        expect(accepts(network, by, from, source), what).toBe(true);
        expect(failureOf(network, [from, by], target, source), what).toBeUndefined();
      }
      return detours.length;
    });
  },
  SLOW_MS,
);

test(
  'no node brings another’s address out of its tunnel',
  () => {
    inClusters((network) => {
      let seen = 0;
      for (const plan of network.plans.values()) {
        const { node } = plan;
        for (const text of acceptedOf(plan)) {
          for (const sender of network.world.workers) {
            if (!areLinked(network, node, sender.name)) continue;
            seen++;
            const isOwn = sender.nodeAddresses.some((own) => formatPrefix(host(own)) === text);
            const what = `${sender.name} brings ${text} to ${node}`;
            expect(accepts(network, node, sender.name, parsePrefix(text)), what).toBe(isOwn);
          }
        }
      }
      return seen;
    });
  },
  SLOW_MS,
);
