import { containsPrefix, firstAddress, hostPrefix, parsePrefix, type Prefix } from '@unbounded/ip';
import {
  findMember,
  type Member,
  type NodePlan,
  parseWorld,
  planNode,
  type TopologyObjects,
} from '@unbounded/topology';
import { anyConnectedCluster } from '@unbounded/topology/random-cluster';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DataPathKind, KernelPlan } from './kernel-plan.ts';
import { renderPlan } from './render.ts';

/** What both data paths make of plans: the same decisions, in their own terms. */

const KINDS = ['ebpf', 'netlink'] as const satisfies readonly DataPathKind[];

interface Node {
  readonly member: Member;
  readonly plan: NodePlan;
  readonly rendered: Readonly<Record<DataPathKind, KernelPlan>>;
}

const nodesOf = (objects: TopologyObjects): Map<string, Node> => {
  const world = parseWorld(objects);
  const members = [...world.workers, ...[...world.pools.values()].flatMap(({ gateways }) => gateways)];
  return new Map(
    members.map(({ name }) => {
      const member = findMember(world, name)!;
      const plan = planNode(world, { member, underlayMtuBytes: 1500 });
      return [
        name,
        { member, plan, rendered: { ebpf: renderPlan('ebpf', plan), netlink: renderPlan('netlink', plan) } },
      ];
    }),
  );
};

const longest = <T extends { readonly prefix: string }>(items: readonly T[], target: Prefix): T | undefined =>
  items
    .map((item) => ({ item, prefix: parsePrefix(item.prefix) }))
    .filter(({ prefix }) => containsPrefix(prefix, target))
    .sort((a, b) => b.prefix.length - a.prefix.length)[0]?.item;

/** By which device and to which far end a packet leaves; a group's name; nowhere: it is dropped, or not ours to send. */
const leavesBy = (plan: KernelPlan, target: Prefix): string => {
  const route = longest(plan.routes, target);
  if (!route || route.via === 'main' || route.via === 'unreachable') return 'nowhere';
  const { via } = route;
  if (typeof via === 'object') {
    if ('gateways' in via) return via.gateways.join();
    if ('group' in via) return via.group;
    const tunnel = plan.tunnels.find(({ device }) => device === via.device);
    return tunnel ? `${tunnel.kind} ${via.remoteIp ?? tunnel.remoteIp ?? ''}` : via.device;
  }
  const entry = longest(plan.endpoints, target)?.via;
  if (!entry) return 'nowhere';
  const group = 'group' in entry ? plan.groups.find(({ name }) => name === entry.group)! : undefined;
  if (group && !group.name.startsWith('node ')) return group.members.length === 0 ? 'nowhere' : group.name;
  const hop = 'nextHop' in entry ? entry.nextHop : group!.members[0]!;
  return hop.protocol === 'WireGuard' ? hop.device : `${hop.protocol} ${hop.remoteIp ?? ''}`;
};

const podOf = ({ podCidrs }: Member, family: 4 | 6): Prefix | undefined => {
  const block = podCidrs.find((own) => own.family === family);
  return block && hostPrefix(firstAddress(block));
};

test('packets for any pod leave both data paths by the same tunnel, group or neighbour', () => {
  let seen = 0;
  fc.assert(
    fc.property(anyConnectedCluster, (objects) => {
      const nodes = nodesOf(objects);
      for (const [name, { rendered, member: own }] of nodes)
        for (const [other, { member }] of nodes)
          for (const family of [4, 6] as const) {
            const target = podOf(member, family);
            if (name === other || !target || !podOf(own, family)) continue;
            const [ebpf, netlink] = KINDS.map((kind) => leavesBy(rendered[kind], target));
            if (ebpf !== 'nowhere') seen++;
            expect(netlink, `${name} -> ${other}`).toBe(ebpf);
          }
    }),
    { numRuns: 100 },
  );
  expect(seen).toBeGreaterThan(0);
});

/** Whether the eBPF programs take a packet with this inner source out of a tunnel of the peer. */
const ebpfTakes = ({ endpoints, groups, forwarders }: KernelPlan, remoteIp: string, source: Prefix): boolean => {
  if (forwarders.includes(remoteIp)) return true;
  const via = longest(endpoints, source)?.via;
  if (!via) return false;
  const hops = 'nextHop' in via ? [via.nextHop] : groups.find(({ name }) => name === via.group)!.members;
  return hops.some((hop) => hop.remoteIp === remoteIp);
};

test('the eBPF data path takes what the plan says that a peer may bring, and more from forwarders alone', () => {
  let [taken, refused] = [0, 0];
  fc.assert(
    fc.property(anyConnectedCluster, (objects) => {
      const nodes = nodesOf(objects);
      for (const [name, { plan, rendered }] of nodes)
        for (const { node, remoteIp, sources, isTransit } of plan.tunnels)
          for (const [other, { member }] of nodes)
            for (const family of [4, 6] as const) {
              const source = podOf(member, family);
              if (!source || other === name) continue;
              const mayBring = sources.some((text) => containsPrefix(parsePrefix(text), source));
              const takes = ebpfTakes(rendered.ebpf, remoteIp, source);
              if (mayBring) taken++;
              else if (!takes) refused++;
              if (mayBring || !isTransit) expect(takes, `${name} takes ${other}'s from ${node}`).toBe(mayBring);
            }
    }),
    { numRuns: 100 },
  );
  expect(Math.min(taken, refused)).toBeGreaterThan(0);
});

describe('what came out of the overlay for a node of the gateway’s network', () => {
  const near = [
    { prefix: '10.1.0.31/32', use: 'transit', node: 's1-w1', overlayIp: '100.65.31.1' },
    { prefix: '10.1.0.32/32', use: 'accepted', node: 's1-w2', overlayIp: '100.65.32.1' },
  ] as const;
  const plan: NodePlan = {
    ...{ node: 's1-g1', site: 's1', role: 'gateway', podCidrs: ['100.65.21.0/24'], overlayAddresses: [] },
    ...{ underlayIp: '10.1.0.21', ownAddresses: ['10.1.0.21'], mtuBytes: 1420, manageCni: true, wireGuard: [] },
    blocks: near.map(({ prefix, use, node, overlayIp }) => {
      const remoteIp = prefix.split('/')[0]!;
      return {
        prefix,
        use,
        mtuBytes: 1400,
        to: { nextHop: { protocol: 'VXLAN', node, remoteIp, peerIp: remoteIp, overlayIp } },
      };
    }),
    tunnels: [],
    ...{
      groups: [],
      contained: [],
      direct: [],
      masquerade: { sources: [], exceptTo: [] },
      boundary: { ownPods: [], exits: [], entries: [] },
      probes: [],
      servedSites: [],
    },
    ...{ holdings: [], tunnelEnds: { addresses: [], wireGuardPorts: [] }, problems: [] },
  };

  test('has a route of its own into the anchor, and an entry', () => {
    const { transitRoutes, nodeAddresses, endpoints, routes } = renderPlan('ebpf', plan);
    expect(transitRoutes).toEqual([{ prefix: '10.1.0.31/32', via: 'anchor', mtuBytes: 1400 }]);
    expect([nodeAddresses, endpoints.map(({ prefix }) => prefix)]).toEqual([
      ['10.1.0.31/32', '10.1.0.32/32'],
      ['10.1.0.31/32', '10.1.0.32/32'],
    ]);
    expect(routes).toEqual([]);
  });

  test('has a route to the node’s tunnel, with the kernel’s own routes', () => {
    const via = { device: 'vxlan0', remoteIp: '10.1.0.31', gatewayIp: '100.65.31.1', peerIp: '10.1.0.31' };
    const { transitRoutes, routes } = renderPlan('netlink', plan);
    expect(transitRoutes).toEqual([{ prefix: '10.1.0.31/32', via, mtuBytes: 1400 }]);
    expect(routes).toEqual([]);
  });
});
