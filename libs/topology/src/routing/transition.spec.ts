import { AddressSet, parsePrefix } from '@unbounded/ip';
import { describe, expect, test } from 'vitest';
import { findMember, planNode } from '../node.plan.ts';
import { parseWorld } from '../world/parse-world.ts';
import type { SiteNode } from '@unbounded/crds';
import { cluster } from '../testdata.ts';
import type { BlockPlan, NodePlan } from '../plan.ts';
import { changedWays } from './changed-ways.ts';
import { planTransition } from './transition.testdata.ts';

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

const isPlain = ({ alsoPlain = [] }: NodePlan, prefix: string): boolean =>
  AddressSet.of(alsoPlain.map(parsePrefix)).overlaps(parsePrefix(prefix));

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
    expect([PEER, FAR].map((prefix) => isPlain(receive, prefix))).toEqual([true, true]);
    const neighbors = after.blocks.flatMap(({ prefix, to, use }) =>
      typeof to === 'object' && 'gateways' in to && use !== 'unrouted' ? [{ prefix, gateways: to.gateways }] : [],
    );
    expect([receive.alsoPlainBy, send.alsoPlainBy]).toEqual([neighbors, neighbors]);
    expect([sendsBy(send, PEER), tunnelsOf(send)]).toEqual(['native', ['VXLAN']]);
    expect(blockOf(send, PEER)?.alsoFrom).toEqual(blockOf(before, PEER)?.to); // its packets may come out of the tunnel
  });
  test('and the other way', () => {
    const [receive, send] = [planTransition(after, before, 'receive'), planTransition(after, before, 'send')];
    expect([sendsBy(receive, PEER), tunnelsOf(receive)]).toEqual(['native', ['VXLAN']]);
    expect(blockOf(receive, PEER)?.alsoFrom).toEqual(blockOf(before, PEER)?.to);
    expect(sendsBy(send, PEER)).toBe('VXLAN');
    expect(isPlain(send, PEER)).toBe(true);
    expect(send.alsoPlainBy).toEqual(planTransition(before, after, 'send').alsoPlainBy);
  });
});

describe('inside of a block that changes from a tunnel to plain routing', () => {
  const WIDE = '100.64.0.0/10';
  const ENCRYPTED = '100.66.0.0/24';
  const OWN = '100.65.31.0/24';
  const ABOUT = '100.67.0.0/16'; // nobody's but the wide block's
  const widened = (plan: NodePlan, encrypted: NodePlan): NodePlan => ({
    ...plan,
    blocks: [
      { ...blockOf(plan, PEER)!, prefix: WIDE },
      { ...blockOf(encrypted, FAR)!, prefix: ENCRYPTED },
      ...plan.blocks.filter(({ prefix }) => prefix === PEER),
    ],
    groups: encrypted.groups,
  });
  const encrypted = planWith('WireGuard');
  const [before, after] = [widened(planWith('VXLAN'), encrypted), widened(planWith('None'), encrypted)];

  test.each([
    ['receive', before, after],
    ['send', before, after],
    ['receive', after, before],
    ['send', after, before],
  ] as const)(
    'what is encrypted or this node’s own does not come without a tunnel, in the step %s',
    (step, from, to) => {
      expect(changedWays(from, to).prefixes).toEqual(new Set([WIDE, PEER]));
      const plan = planTransition(from, to, step);
      expect([ABOUT, PEER, ENCRYPTED, OWN].map((prefix) => isPlain(plan, prefix))).toEqual([true, true, false, false]);
    },
  );
});

test.each<[Protocol, Protocol]>([
  ['VXLAN', 'WireGuard'],
  ['None', 'WireGuard'],
  ['WireGuard', 'VXLAN'],
])('%s to %s does not wait: what is encrypted is so at once', (from, to) => {
  const [before, after] = [planWith(from), planWith(to)];
  expect(planTransition(before, after, 'receive')).toBe(after);
});

describe('what is not there any more', () => {
  const shape = { sites: 2, gateways: 2, workers: 3 } as const;
  type Objects = ReturnType<typeof cluster>;
  const planOf = (objects: Objects): NodePlan => {
    const world = parseWorld(objects);
    return planNode(world, { member: findMember(world, 's1-w1')!, underlayMtuBytes: 1500 });
  };
  const objects = (protocol: Protocol, change: (objects: Objects) => Objects = (same) => same): NodePlan =>
    planOf(change(cluster({ ...shape, protocol })));
  const withPool = (from: Objects, keep: (name: string) => boolean): Objects => ({
    ...from,
    gatewayPools: from.gatewayPools.map((pool) => ({
      ...pool,
      status: { ...pool.status, nodes: pool.status!.nodes!.filter(({ name }) => keep(name)) },
    })),
  });
  const withSlices = (from: Objects, change: (nodes: readonly SiteNode[]) => readonly SiteNode[]): Objects => ({
    ...from,
    slices: from.slices.map((one) => ({ ...one, nodes: change(one.nodes!) })),
  });
  const gone = (from: Objects): Objects => withPool(from, (name) => name !== 's1-g2');
  const demoted = (from: Objects): Objects => {
    const left = from.gatewayPools.flatMap(({ status }) => status!.nodes!).find(({ name }) => name === 's1-g2')!;
    const { siteName: _, externalIPs: __, gatewayWireguardPort: ___, ...node } = left;
    return withSlices(gone(from), (nodes) => (nodes[0]!.name === 's1-w1' ? [...nodes, node] : nodes));
  };
  const membersTo = (plan: NodePlan): string[] => {
    const to = blockOf(plan, FAR)!.to as { group: string };
    const { members } = plan.groups.find(({ name }) => name === to.group)!;
    return members.map(({ node, protocol }) => `${node} ${protocol}`);
  };

  test.each([
    ['is gone', gone],
    ['is a worker now', demoted],
  ])('a gateway that %s carries nothing from then on', (_, change) => {
    const [before, after] = [objects('VXLAN'), objects('VXLAN', change)];
    expect(planTransition(before, after, 'receive')).toBe(after);
    const other = objects('GENEVE', change);
    expect(membersTo(planTransition(before, other, 'receive'))).toEqual(['s1-g1 VXLAN']);
    expect(membersTo(planTransition(before, other, 'send'))).toEqual(['s1-g1 GENEVE']);
  });

  test('a gateway that is new carries at once, beside one whose protocol changes', () => {
    const [before, after] = [objects('VXLAN', gone), objects('GENEVE')];
    expect(planTransition(before, objects('VXLAN'), 'receive')).toEqual(objects('VXLAN'));
    expect(membersTo(planTransition(before, after, 'receive'))).toEqual(['s1-g1 VXLAN', 's1-g2 GENEVE']);
  });

  test('all gateways at once are replaced at once, whatever the protocol', () => {
    const only = (name: string) => (from: Objects) => withPool(from, (one) => !one.startsWith('s1-') || one === name);
    const after = objects('GENEVE', only('s1-g2'));
    expect(membersTo(planTransition(objects('VXLAN', only('s1-g1')), after, 'receive'))).toEqual(['s1-g2 GENEVE']);
  });

  test('to another address of a node packets go at once, also while its protocol changes', () => {
    const moved = (from: Objects): Objects =>
      withSlices(from, (nodes) =>
        nodes.map((node) => (node.name === 's1-w2' ? { ...node, internalIPs: ['10.1.0.99'] } : node)),
      );
    const before = objects('VXLAN');
    expect(planTransition(before, objects('VXLAN', moved), 'receive')).toEqual(objects('VXLAN', moved));
    const step = planTransition(before, objects('GENEVE', moved), 'receive');
    expect(blockOf(step, PEER)?.to).toMatchObject({ nextHop: { protocol: 'GENEVE', remoteIp: '10.1.0.99' } });
    expect(sendsBy(step, '100.65.33.0/24')).toBe('VXLAN');
  });

  test('to another node that has the block now packets go at once', () => {
    const swapped = (from: Objects): Objects =>
      withSlices(from, (nodes) => {
        const [, second, third] = nodes;
        if (second!.name !== 's1-w2') return nodes;
        return [nodes[0]!, { ...second!, podCIDRs: third!.podCIDRs! }, { ...third!, podCIDRs: second!.podCIDRs! }];
      });
    for (const protocol of ['VXLAN', 'GENEVE'] as const)
      expect(blockOf(planTransition(objects('VXLAN'), objects(protocol, swapped), 'receive'), PEER)?.to).toMatchObject({
        nextHop: { node: 's1-w3', protocol },
      });
  });
});

test('a plan that changes no way has no steps', () => {
  expect(changedWays(planWith('VXLAN'), planWith('VXLAN')).prefixes).toEqual(new Set());
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
