import { describe, expect, test } from 'vitest';
import { findMember, planNode } from '../node.plan.ts';
import { parseWorld } from '../world/parse-world.ts';
import { cluster } from '../testdata.ts';
import type { NodePlan } from '../plan.ts';
import { changedPrefixes, planTransition } from './transition.ts';

type Protocol = NonNullable<Parameters<typeof cluster>[0]['protocol']>;
const planWith = (protocol: Protocol, node = 's1-w1'): NodePlan => {
  const world = parseWorld(cluster({ sites: 2, gateways: 2, workers: 3, protocol }));
  return planNode(world, { member: findMember(world, node)!, underlayMtuBytes: 1500 });
};
const PEER = '100.65.32.0/24';
const FAR = '100.66.0.0/16';
const sendsBy = (plan: NodePlan, prefix: string): string => {
  const route = plan.routes.find((candidate) => candidate.prefix === prefix);
  if (route && typeof route.via === 'object' && 'gateways' in route.via) return 'plain';
  const via = plan.endpoints.find((candidate) => candidate.prefix === prefix)?.via;
  if (!via) return 'nowhere';
  if ('nextHop' in via) return via.nextHop.device;
  return [...new Set(plan.groups.find(({ name }) => name === via.group)!.members.map(({ device }) => device))].join();
};
const devices = (plan: NodePlan): string[] => plan.tunnels.map(({ device }) => device).sort();

describe('from one tunnel to another', () => {
  const [before, after] = [planWith('VXLAN'), planWith('GENEVE')];
  test('first both are taken and the old one is sent, then the new one', () => {
    const [receive, send] = [planTransition(before, after, 'receive'), planTransition(before, after, 'send')];
    expect([devices(receive), sendsBy(receive, PEER), sendsBy(receive, FAR)]).toEqual([
      ['geneve0', 'vxlan0'],
      'vxlan0',
      'vxlan0',
    ]);
    expect([devices(send), sendsBy(send, PEER), sendsBy(send, FAR)]).toEqual([
      ['geneve0', 'vxlan0'],
      'geneve0',
      'geneve0',
    ]);
  });
});

describe('from a tunnel to plain routing', () => {
  const [before, after] = [planWith('VXLAN'), planWith('None')];
  test('plain packets are taken before any are sent, and tunnelled ones after none are', () => {
    const [receive, send] = [planTransition(before, after, 'receive'), planTransition(before, after, 'send')];
    expect([sendsBy(receive, PEER), sendsBy(receive, FAR)]).toEqual(['vxlan0', 'vxlan0']);
    expect(receive.alsoPlain).toEqual(expect.arrayContaining([PEER, FAR]));
    expect([sendsBy(send, PEER), devices(send)]).toEqual(['plain', ['vxlan0']]);
    expect(send.endpoints.map(({ prefix }) => prefix)).toContain(PEER); // whose packets may come out of the tunnel
  });
  test('and the other way', () => {
    const [receive, send] = [planTransition(after, before, 'receive'), planTransition(after, before, 'send')];
    expect([sendsBy(receive, PEER), devices(receive)]).toEqual(['plain', ['vxlan0']]);
    expect(receive.endpoints.map(({ prefix }) => prefix)).toContain(PEER);
    expect(sendsBy(send, PEER)).toBe('vxlan0');
    expect(send.alsoPlain).toContain(PEER);
  });
});

test.each<[Protocol, Protocol]>([
  ['VXLAN', 'WireGuard'],
  ['None', 'WireGuard'],
  ['WireGuard', 'VXLAN'],
])('%s to %s does not wait: what is encrypted is so at once', (from, to) => {
  const [before, after] = [planWith(from), planWith(to)];
  expect(planTransition(before, after, 'receive')).toBe(after);
});

test('a plan that changes no way has no steps', () => {
  expect(changedPrefixes(planWith('VXLAN'), planWith('VXLAN'))).toEqual(new Set());
});

describe('under the netlink data path', () => {
  const netlinkPlan = (protocol: Protocol): NodePlan => {
    const world = parseWorld(cluster({ sites: 2, gateways: 2, workers: 3, protocol }));
    return planNode(world, { member: findMember(world, 's1-w1')!, underlayMtuBytes: 1500, dataplane: 'netlink' });
  };
  const viaOf = (plan: NodePlan, prefix: string) => plan.routes.find((route) => route.prefix === prefix)!.via;
  const steps = (from: Protocol, to: Protocol) =>
    (['receive', 'send'] as const).map((step) => planTransition(netlinkPlan(from), netlinkPlan(to), step));

  test.each<[Protocol, Protocol]>([
    ['VXLAN', 'None'],
    ['None', 'VXLAN'],
    ['VXLAN', 'GENEVE'],
    ['GENEVE', 'IPIP'],
  ])('%s to %s: the routes change between two steps that take both', (from, to) => {
    const [before, after] = [netlinkPlan(from), netlinkPlan(to)];
    const [receive, send] = steps(from, to);
    for (const prefix of [PEER, FAR]) {
      expect(viaOf(receive!, prefix)).toEqual(viaOf(before, prefix));
      expect(viaOf(send!, prefix)).toEqual(viaOf(after, prefix));
    }
    for (const plan of [receive!, send!]) {
      expect(devices(plan)).toEqual([...new Set([...devices(before), ...devices(after)])].sort());
      const named = plan.routes.flatMap(({ via }) => (typeof via === 'object' && 'group' in via ? [via.group] : []));
      expect(plan.groups.map(({ name }) => name)).toEqual([...new Set(named)].sort());
    }
    expect(receive!.groups).toEqual(before.groups);
    expect(send!.groups).toEqual(after.groups);
  });

  test('whose packets may come by tunnel is what both plans say, but nobody’s who encrypts from now on', () => {
    const [before, after] = [netlinkPlan('VXLAN'), netlinkPlan('GENEVE')];
    for (const plan of steps('VXLAN', 'None')) expect(plan.senders).toEqual(before.senders);
    for (const plan of steps('None', 'GENEVE')) expect(plan.senders).toEqual(after.senders);
    const [peer] = before.senders!;
    const wireGuard = [
      {
        name: 'wg51820',
        listenPort: 51_820,
        mtuBytes: 1420,
        peers: [{ node: peer!.node, publicKey: '', allowedIps: [] }],
      },
    ];
    const senders = after.senders!.filter(({ node }) => node !== peer!.node);
    const step = planTransition(before, { ...after, senders, wireGuard }, 'receive');
    expect(step.tunnels.map(({ device }) => device)).toContain('vxlan0'); // for the others
    expect(step.senders!.map(({ node }) => node)).not.toContain(peer!.node);
    expect(step.senders).toHaveLength(2 * senders.length);
  });

  test('what is or becomes encrypted does not wait', () => {
    const [open, encrypted] = [netlinkPlan('VXLAN'), netlinkPlan('WireGuard')];
    expect(planTransition(open, encrypted, 'receive')).toBe(encrypted);
    expect(planTransition(encrypted, open, 'receive')).toBe(open);
  });
});
