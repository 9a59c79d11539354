import { describe, expect, test } from 'vitest';
import { findMember, planNode } from '../node.plan.ts';
import { parseWorld } from '../world/parse-world.ts';
import { cluster } from '../testdata.ts';
import type { BlockPlan, NodePlan } from '../plan.ts';
import { changedPrefixes, planTransition } from './transition.ts';

type Protocol = NonNullable<Parameters<typeof cluster>[0]['protocol']>;
const planWith = (protocol: Protocol, node = 's1-w1'): NodePlan => {
  const world = parseWorld(cluster({ sites: 2, gateways: 2, workers: 3, protocol }));
  return planNode(world, { member: findMember(world, node)!, underlayMtuBytes: 1500 });
};
const PEER = '100.65.32.0/24';
const FAR = '100.66.0.0/16';
const blockOf = (plan: NodePlan, prefix: string): BlockPlan | undefined =>
  plan.blocks.find((candidate) => candidate.prefix === prefix);
/** By what packets to a block leave. */
const sendsBy = (plan: NodePlan, prefix: string): string => {
  const to = blockOf(plan, prefix)?.to;
  if (to === undefined || to === 'pending') return 'nowhere';
  if ('gateways' in to) return 'native';
  if ('nextHop' in to) return to.nextHop.protocol;
  const { members } = plan.groups.find(({ name }) => name === to.group)!;
  return [...new Set(members.map(({ protocol }) => protocol))].join();
};
const tunnelsOf = (plan: NodePlan): string[] => [...new Set(plan.tunnels.map(({ protocol }) => protocol))].sort();

describe('from one tunnel to another', () => {
  const [before, after] = [planWith('VXLAN'), planWith('GENEVE')];
  test('first both are taken and the old one is sent, then the new one', () => {
    const [receive, send] = [planTransition(before, after, 'receive'), planTransition(before, after, 'send')];
    expect([tunnelsOf(receive), sendsBy(receive, PEER), sendsBy(receive, FAR)]).toEqual([
      ['GENEVE', 'VXLAN'],
      'VXLAN',
      'VXLAN',
    ]);
    expect([tunnelsOf(send), sendsBy(send, PEER), sendsBy(send, FAR)]).toEqual([
      ['GENEVE', 'VXLAN'],
      'GENEVE',
      'GENEVE',
    ]);
  });
});

describe('echoes', () => {
  const waysOf = ({ echoes = [] }: NodePlan): string[] =>
    echoes.map(({ node, via }) => `${node} ${'remoteIp' in via ? via.protocol : via.device}`);
  const [vxlan, geneve, native] = [planWith('VXLAN'), planWith('GENEVE'), planWith('None')];

  test('go by the way that is sent by', () => {
    expect(waysOf(planTransition(vxlan, geneve, 'receive'))).toEqual(['s1-g1 VXLAN', 's1-g2 VXLAN']);
    expect(waysOf(planTransition(vxlan, geneve, 'send'))).toEqual(['s1-g1 GENEVE', 's1-g2 GENEVE']);
  });

  test('are not sent while it is a native one', () => {
    expect(waysOf(planTransition(native, vxlan, 'receive'))).toEqual([]);
    expect(waysOf(planTransition(native, vxlan, 'send'))).toEqual(['s1-g1 VXLAN', 's1-g2 VXLAN']);
    expect(waysOf(planTransition(vxlan, native, 'receive'))).toEqual([]);
  });

  test('are sent through gateways of the new plan alone, like its probes', () => {
    const without = (plan: NodePlan, gone: string): NodePlan => ({
      ...plan,
      echoes: plan.echoes!.filter(({ node }) => node !== gone),
      probes: plan.probes.filter(({ node }) => node !== gone),
    });
    const step = planTransition(vxlan, without(geneve, 's1-g2'), 'receive');
    expect(waysOf(step)).toEqual(['s1-g1 VXLAN']);
    expect(step.probes.map(({ node }) => node)).not.toContain('s1-g2');
  });
});

describe('from a tunnel to plain routing', () => {
  const [before, after] = [planWith('VXLAN'), planWith('None')];
  test('plain packets are taken before any are sent, and tunnelled ones after none are', () => {
    const [receive, send] = [planTransition(before, after, 'receive'), planTransition(before, after, 'send')];
    expect([sendsBy(receive, PEER), sendsBy(receive, FAR)]).toEqual(['VXLAN', 'VXLAN']);
    expect(receive.alsoPlain).toEqual(expect.arrayContaining([PEER, FAR]));
    expect([sendsBy(send, PEER), tunnelsOf(send)]).toEqual(['native', ['VXLAN']]);
    expect(blockOf(send, PEER)?.alsoFrom).toEqual(blockOf(before, PEER)?.to); // its packets may come out of the tunnel
  });
  test('and the other way', () => {
    const [receive, send] = [planTransition(after, before, 'receive'), planTransition(after, before, 'send')];
    expect([sendsBy(receive, PEER), tunnelsOf(receive)]).toEqual(['native', ['VXLAN']]);
    expect(blockOf(receive, PEER)?.alsoFrom).toEqual(blockOf(before, PEER)?.to);
    expect(sendsBy(send, PEER)).toBe('VXLAN');
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

describe('between the plans', () => {
  const steps = (from: Protocol, to: Protocol) =>
    (['receive', 'send'] as const).map((step) => planTransition(planWith(from), planWith(to), step));

  test.each<[Protocol, Protocol]>([
    ['VXLAN', 'None'],
    ['None', 'VXLAN'],
    ['VXLAN', 'GENEVE'],
    ['GENEVE', 'IPIP'],
  ])('%s to %s: blocks go another way between two steps that take both', (from, to) => {
    const [before, after] = [planWith(from), planWith(to)];
    const [receive, send] = steps(from, to);
    for (const prefix of [PEER, FAR]) {
      expect(blockOf(receive!, prefix)?.to).toEqual(blockOf(before, prefix)?.to);
      expect(blockOf(send!, prefix)?.to).toEqual(blockOf(after, prefix)?.to);
    }
    for (const plan of [receive!, send!]) {
      expect(tunnelsOf(plan)).toEqual([...new Set([...tunnelsOf(before), ...tunnelsOf(after)])].sort());
      const ends = plan.blocks.flatMap(({ to: end, alsoFrom }) => [end, alsoFrom]);
      const named = ends.flatMap((end) => (typeof end === 'object' && 'group' in end ? [end.group] : []));
      expect(plan.groups.map(({ name }) => name)).toEqual([...new Set(named)].sort());
    }
  });

  test('whose packets may come by tunnel is what both plans say, but nobody’s who encrypts from now on', () => {
    const [before, after] = [planWith('VXLAN'), planWith('GENEVE')];
    for (const plan of steps('VXLAN', 'None')) expect(plan.tunnels).toEqual(before.tunnels);
    for (const plan of steps('None', 'GENEVE')) expect(plan.tunnels).toEqual(after.tunnels);
    const [peer] = before.tunnels;
    const wireGuard = [
      {
        name: 'wg51820',
        listenPort: 51_820,
        mtuBytes: 1420,
        peers: [{ node: peer!.node, publicKey: '', allowedIps: [] }],
      },
    ];
    const tunnels = after.tunnels.filter(({ node }) => node !== peer!.node);
    const step = planTransition(before, { ...after, tunnels, wireGuard }, 'receive');
    expect(tunnelsOf(step)).toContain('VXLAN'); // for the others
    expect(step.tunnels.map(({ node }) => node)).not.toContain(peer!.node);
    expect(step.tunnels).toHaveLength(2 * tunnels.length);
  });

  test('what is or becomes encrypted does not wait', () => {
    const [open, encrypted] = [planWith('VXLAN'), planWith('WireGuard')];
    expect(planTransition(open, encrypted, 'receive')).toBe(encrypted);
    expect(planTransition(encrypted, open, 'receive')).toBe(open);
  });
});
