import { AddressSet, parsePrefix } from '@unbounded/ip';
import { findMember, type NodePlan, parseWorld, planNode } from '@unbounded/topology';
import { cluster } from '@unbounded/topology/testdata';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createTransitions, type Transitions } from './transitions.ts';

type Protocol = 'VXLAN' | 'GENEVE' | 'None' | 'WireGuard';

const WORKERS = 14;
const planWith = (protocol: Protocol, { gateways = 1, workers = WORKERS } = {}): NodePlan => {
  const world = parseWorld(cluster({ sites: 2, gateways, workers, protocol }));
  return planNode(world, { member: findMember(world, 's1-w1')!, underlayMtuBytes: 1500 });
};
const PLANS = {
  VXLAN: planWith('VXLAN'),
  GENEVE: planWith('GENEVE'),
  None: planWith('None'),
  WireGuard: planWith('WireGuard'),
} satisfies Record<Protocol, NodePlan>;
const nodeOf = (prefix: string): string | undefined => {
  const to = PLANS.VXLAN.blocks.find((block) => block.prefix === prefix)?.to;
  return typeof to === 'object' && 'nextHop' in to ? to.nextHop.node : undefined;
};
/** Blocks of single nodes. */
const BLOCKS = PLANS.VXLAN.blocks.flatMap(({ prefix }) => (nodeOf(prefix) === undefined ? [] : [prefix]));
const [NEAR, OTHER] = BLOCKS as [string, string];

/** VXLAN to all nodes but those of these blocks. */
const planOf = (ways: Readonly<Record<string, Protocol>>): NodePlan => {
  const protocols = new Map(Object.entries(ways).map(([prefix, protocol]) => [nodeOf(prefix), protocol]));
  const planFor = (node: string | undefined): NodePlan => PLANS[protocols.get(node) ?? 'VXLAN'];
  return {
    ...PLANS.VXLAN,
    blocks: PLANS.VXLAN.blocks.map(({ prefix }) =>
      planFor(nodeOf(prefix)).blocks.find((block) => block.prefix === prefix)!,
    ),
    tunnels: Object.values(PLANS).flatMap((plan) => plan.tunnels.filter(({ node }) => planFor(node) === plan)),
    wireGuard: PLANS.WireGuard.wireGuard.map((device) => ({
      ...device,
      peers: device.peers.filter(({ node }) => planFor(node) === PLANS.WireGuard),
    })),
  };
};

const open = (first = planOf({})): Transitions & { pass(ms: number): void } => {
  let nowMs = 0;
  const transitions = createTransitions(() => nowMs);
  transitions.to(first);
  return { ...transitions, pass: (ms) => void (nowMs += ms) };
};

const sentBy = (plan: NodePlan | undefined, prefix: string): string => {
  const to = plan?.blocks.find((block) => block.prefix === prefix)?.to;
  if (typeof to !== 'object' || 'group' in to) return 'nothing';
  return 'gateways' in to ? 'None' : to.nextHop.protocol;
};
const takenBy = (plan: NodePlan | undefined, prefix: string): string[] => {
  const isPlain =
    sentBy(plan, prefix) === 'None' ||
    AddressSet.of((plan?.alsoPlain ?? []).map(parsePrefix)).overlaps(parsePrefix(prefix));
  const tunnels = (plan?.tunnels ?? []).filter(({ node }) => node === nodeOf(prefix));
  return [...new Set(tunnels.map(({ protocol }) => protocol)), ...(isPlain ? ['None'] : [])].sort();
};

test('a change that begins while another one is at its second step does not end that', () => {
  const steps = open();
  steps.to(planOf({ [NEAR]: 'None' }));
  steps.pass(24_000);
  steps.to(planOf({}));
  steps.pass(5000);
  steps.to(planOf({ [OTHER]: 'GENEVE' }));
  expect([sentBy(steps.effective(), NEAR), takenBy(steps.effective(), NEAR)]).toEqual(['VXLAN', ['None', 'VXLAN']]);
  expect([sentBy(steps.effective(), OTHER), takenBy(steps.effective(), OTHER)]).toEqual(['VXLAN', ['GENEVE', 'VXLAN']]);
  expect(steps.nextStepMs()).toBe(4000);
  steps.pass(4000);
  expect([sentBy(steps.effective(), NEAR), takenBy(steps.effective(), NEAR)]).toEqual(['VXLAN', ['None', 'VXLAN']]);
  expect([sentBy(steps.effective(), OTHER), takenBy(steps.effective(), OTHER)]).toEqual([
    'GENEVE',
    ['GENEVE', 'VXLAN'],
  ]);
});

test('nor does it make that last longer', () => {
  const steps = open();
  steps.to(planOf({ [NEAR]: 'GENEVE' }));
  steps.pass(5000);
  steps.to(planOf({ [NEAR]: 'GENEVE', [OTHER]: 'None' }));
  steps.pass(19_000);
  expect(takenBy(steps.effective(), NEAR)).toEqual(['GENEVE']);
  expect([sentBy(steps.effective(), OTHER), takenBy(steps.effective(), OTHER)]).toEqual(['None', ['None', 'VXLAN']]);
  expect(steps.nextStepMs()).toBe(5000);
  steps.pass(5000);
  expect(steps.nextStepMs()).toBeUndefined();
  expect(steps.effective()).toEqual(planOf({ [NEAR]: 'GENEVE', [OTHER]: 'None' }));
});

test('a change that begins while another one is at its first step does not delay that', () => {
  const steps = open();
  steps.to(planOf({ [NEAR]: 'GENEVE' }));
  steps.pass(3000);
  steps.to(planOf({ [NEAR]: 'GENEVE', [OTHER]: 'GENEVE' }));
  expect(steps.nextStepMs()).toBe(1000);
  steps.pass(1000);
  expect([NEAR, OTHER].map((prefix) => sentBy(steps.effective(), prefix))).toEqual(['GENEVE', 'VXLAN']);
  expect(steps.nextStepMs()).toBe(3000);
  steps.pass(3000);
  expect([NEAR, OTHER].map((prefix) => sentBy(steps.effective(), prefix))).toEqual(['GENEVE', 'GENEVE']);
});

test('a block that changes again amid its steps takes packets by all three ways, and each as long as its own change lasts', () => {
  const steps = open();
  steps.to(planOf({ [NEAR]: 'None' }));
  steps.pass(5000);
  steps.to(planOf({ [NEAR]: 'GENEVE' }));
  expect([sentBy(steps.effective(), NEAR), takenBy(steps.effective(), NEAR)]).toEqual([
    'None',
    ['GENEVE', 'None', 'VXLAN'],
  ]);
  steps.pass(4000);
  expect([sentBy(steps.effective(), NEAR), takenBy(steps.effective(), NEAR)]).toEqual([
    'GENEVE',
    ['GENEVE', 'None', 'VXLAN'],
  ]);
  steps.pass(15_000);
  expect(takenBy(steps.effective(), NEAR)).toEqual(['GENEVE', 'None']);
  steps.pass(5000);
  expect(takenBy(steps.effective(), NEAR)).toEqual(['GENEVE']);
});

test('a way that is left before anybody sent by it is taken all the same: the other end may hear of that late', () => {
  for (const protocol of ['GENEVE', 'None'] as const) {
    const steps = open();
    steps.to(planOf({ [NEAR]: protocol }));
    steps.pass(3900);
    steps.to(planOf({}));
    expect([sentBy(steps.effective(), NEAR), takenBy(steps.effective(), NEAR)]).toEqual([
      'VXLAN',
      [protocol, 'VXLAN'].sort(),
    ]);
  }
});

test('what is sent is taken as well, however often a block changes in its first step', () => {
  const steps = open();
  for (const protocol of ['GENEVE', 'None', 'GENEVE'] as const) {
    steps.to(planOf({ [NEAR]: protocol }));
    expect([sentBy(steps.effective(), NEAR), takenBy(steps.effective(), NEAR)]).toEqual([
      'VXLAN',
      expect.arrayContaining(['VXLAN', protocol]),
    ]);
    steps.pass(2000);
  }
});

test('what was encrypted meanwhile does not become as it was before that', () => {
  const steps = open(planOf({ [NEAR]: 'None' }));
  steps.to(planOf({}));
  steps.pass(1000);
  steps.to(planOf({ [NEAR]: 'WireGuard' }));
  expect([sentBy(steps.effective(), NEAR), takenBy(steps.effective(), NEAR)]).toEqual(['WireGuard', []]);
  steps.pass(1000);
  steps.to(planOf({}));
  expect([sentBy(steps.effective(), NEAR), takenBy(steps.effective(), NEAR)]).toEqual(['VXLAN', ['VXLAN']]);
});

test('each of many changes that follow one another goes all its steps', () => {
  const steps = open();
  const blocks = BLOCKS.slice(0, 12);
  let ways: Record<string, Protocol> = {};
  for (const prefix of blocks) {
    ways = { ...ways, [prefix]: 'None' };
    steps.to(planOf(ways));
    steps.pass(150);
  }
  const sent = (): string[] => blocks.map((prefix) => sentBy(steps.effective(), prefix));
  const taken = (): string[][] => blocks.map((prefix) => takenBy(steps.effective(), prefix));
  expect(new Set(sent())).toEqual(new Set(['VXLAN']));
  steps.pass(4000);
  expect(new Set(sent())).toEqual(new Set(['None']));
  steps.pass(17_000);
  expect(taken()).toEqual(blocks.map(() => ['None', 'VXLAN']));
  steps.pass(3000);
  expect(steps.effective()).toEqual(planOf(ways));
});

describe('gateways behind which the same blocks are', () => {
  const GATEWAYS = 6;
  const gatewayPlan = (protocol: Protocol): NodePlan => planWith(protocol, { gateways: GATEWAYS, workers: 2 });
  const plans = { VXLAN: gatewayPlan('VXLAN'), GENEVE: gatewayPlan('GENEVE'), WireGuard: gatewayPlan('WireGuard') };
  const { name, members: all } = plans.VXLAN.groups[0]!;
  const nodes = all.map(({ node }) => node).sort();
  /** The first of them by these protocols, the others by VXLAN. @param toWorker to the worker beside this one */
  const by = (protocols: readonly (keyof typeof plans)[], toWorker: keyof typeof plans = 'VXLAN'): NodePlan => {
    const planFor = (node: string | undefined): NodePlan =>
      plans[nodes.includes(node!) ? (protocols[nodes.indexOf(node!)] ?? 'VXLAN') : toWorker];
    const pick = <T extends { readonly node: string }>(from: (plan: NodePlan) => readonly T[]): T[] =>
      Object.values(plans).flatMap((plan) => from(plan).filter(({ node }) => planFor(node) === plan));
    return {
      ...plans.VXLAN,
      blocks: plans.VXLAN.blocks.map((block, index) => {
        const { to } = block;
        return typeof to === 'object' && 'nextHop' in to ? planFor(to.nextHop.node).blocks[index]! : block;
      }),
      groups: plans.VXLAN.groups.map((group, index) => ({
        ...group,
        members: pick((plan) => plan.groups[index]!.members),
      })),
      tunnels: pick(({ tunnels }) => tunnels),
      wireGuard: plans.WireGuard.wireGuard.map((device, index) => ({
        ...device,
        peers: pick((plan) => plan.wireGuard[index]?.peers ?? []),
      })),
    };
  };
  const protocolsOf = (plan: NodePlan | undefined): string[] =>
    (plan?.groups.find((group) => group.name === name)?.members ?? [])
      .toSorted((a, b) => (a.node < b.node ? -1 : 1))
      .map(({ protocol }) => protocol);

  test('change each by its own clock', () => {
    const steps = open(by([]));
    for (let count = 1; count <= GATEWAYS; count++) {
      steps.to(by(nodes.slice(0, count).map(() => 'GENEVE' as const)));
      steps.pass(3000);
      // Four seconds after its change a gateway is sent to the new way: those that changed last are not yet.
      const isNew = (index: number): boolean => (count - index) * 3000 >= 4000;
      const expected = nodes.map((_, index) => (isNew(index) ? 'GENEVE' : 'VXLAN'));
      const plan = steps.effective()!;
      expect(protocolsOf(plan), `${count} changed`).toEqual(expected);
      const ways = plan.tunnels.map(({ node, protocol }) => `${node} ${protocol}`);
      expect(ways).toEqual(expect.arrayContaining(nodes.map((node, index) => `${node} ${expected[index]}`)));
    }
  });

  test('are sent to encrypted at once, also while another one changes', () => {
    const steps = open(by([]));
    steps.to(by(['GENEVE', 'WireGuard']));
    expect(protocolsOf(steps.effective()).slice(1)).toEqual(['WireGuard', ...nodes.slice(2).map(() => 'VXLAN')]);
    expect(steps.effective()!.tunnels.map(({ node }) => node)).not.toContain(nodes[1]);
  });

  test('and so amid their own change, while that of a link to a worker goes on', () => {
    const all = <T>(protocol: T): T[] => nodes.map(() => protocol);
    const steps = open(by([]));
    steps.to(by(all('GENEVE' as const), 'GENEVE'));
    steps.pass(2000);
    steps.to(by(all('WireGuard' as const), 'GENEVE'));
    expect(protocolsOf(steps.effective())).toEqual(all('WireGuard'));
    steps.pass(1000);
    steps.to(by(all('GENEVE' as const), 'GENEVE'));
    expect(protocolsOf(steps.effective())).toEqual(all('GENEVE')); // not the way of before
  });

  test('that were encrypted for a moment are not sent to by the way before that', () => {
    const steps = open(by([]));
    steps.to(by(['GENEVE']));
    steps.to(by(['WireGuard', 'GENEVE']));
    steps.to(by(['GENEVE', 'GENEVE']));
    expect(protocolsOf(steps.effective()).slice(0, 2)).toEqual(['GENEVE', 'VXLAN']);
  });

  test('take their first step, also where they were reached natively for a moment', () => {
    const steps = open(plans.VXLAN);
    steps.to(gatewayPlan('None'));
    steps.pass(2000);
    steps.to(plans.GENEVE);
    expect(protocolsOf(steps.effective())).toEqual(nodes.map(() => 'VXLAN'));
  });

  const unencrypted = (plan: NodePlan): { readonly node: string; readonly protocol: string }[] =>
    [
      ...plan.groups.flatMap(({ members }) => members),
      ...plan.blocks.flatMap(({ to }) => (typeof to === 'object' && 'nextHop' in to ? [to.nextHop] : [])),
    ].filter(({ protocol }) => protocol !== 'WireGuard');

  test('whatever changes when: what is sent unencrypted has a tunnel, and goes to nobody who encrypts', () => {
    const protocol = fc.constantFrom<keyof typeof plans>('VXLAN', 'GENEVE', 'WireGuard');
    const change = fc.record({
      to: fc.array(protocol, { minLength: GATEWAYS, maxLength: GATEWAYS }),
      toWorker: protocol,
      afterMs: fc.constantFrom(0, 500, 2000, 3900, 5000, 12_000),
    });
    const changes = fc.array(change, { minLength: 2, maxLength: 6 });
    const holds = fc.property(changes, (some) => {
      const steps = open(by([]));
      for (const { to, toWorker, afterMs } of some) {
        steps.pass(afterMs);
        const target = by(to, toWorker);
        steps.to(target);
        const plan = steps.effective()!;
        const encrypted = new Set(target.wireGuard.flatMap(({ peers }) => peers.map(({ node }) => node)));
        const tunnels = new Set(plan.tunnels.map((peer) => `${peer.node} ${peer.protocol}`));
        for (const hop of unencrypted(plan)) {
          expect(encrypted).not.toContain(hop.node);
          expect(tunnels).toContain(`${hop.node} ${hop.protocol}`);
        }
        for (const { node } of plan.tunnels) expect(encrypted).not.toContain(node);
      }
    });
    fc.assert(holds, { numRuns: 100 });
  });
});

test('a node that is gone amid a change has no tunnel any more', () => {
  const gone = `s1-w${WORKERS}`;
  const steps = open(PLANS.VXLAN);
  steps.to(PLANS.GENEVE);
  expect(steps.effective()!.tunnels.map(({ node }) => node)).toContain(gone);
  steps.pass(2000);
  steps.to(planWith('GENEVE', { workers: WORKERS - 1 }));
  expect(steps.effective()!.tunnels.map(({ node }) => node)).not.toContain(gone);
  expect(takenBy(steps.effective(), NEAR)).toEqual(['GENEVE', 'VXLAN']);
});

describe('between two ends', () => {
  const TICK_MS = 100;
  /** As late as an end hears of a change, at most. */
  const LATE_MS = 1500;
  const protocols = fc.constantFrom<Protocol>('VXLAN', 'GENEVE', 'None');
  const late = fc.integer({ min: 0, max: LATE_MS / TICK_MS });
  const change = fc.record({
    afterTicks: fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 20, max: 120 })),
    near: protocols,
    other: protocols,
    late: fc.tuple(late, late),
  });

  test('nothing is sent that the other end does not take, whatever changes when, and whoever hears of it late', () => {
    const changes = fc.array(change, { minLength: 1, maxLength: 8 });
    const holds = fc.property(changes, (some) => {
      const ends = [open(), open()] as const;
      let at = 0;
      const heard = ends.map(() => new Map<number, NodePlan>());
      for (const { afterTicks, near, other, late: lates } of some) {
        at += afterTicks;
        const plan = planOf({ [NEAR]: near, [OTHER]: other });
        lates.forEach((ticks, index) => {
          // Who hears late hears the latest state, never a former one after it.
          for (const tick of heard[index]!.keys()) if (tick >= at + ticks) heard[index]!.delete(tick);
          heard[index]!.set(at + ticks, plan);
        });
      }
      for (let tick = 0; tick <= at + 300; tick++) {
        ends.forEach((end, index) => {
          const plan = heard[index]!.get(tick);
          if (plan) end.to(plan);
        });
        for (const prefix of [NEAR, OTHER])
          for (const [from, to] of [ends, ends.toReversed()] as (typeof ends)[])
            if (!takenBy(to.effective(), prefix).includes(sentBy(from.effective(), prefix)))
              throw new Error(
                `after ${tick * TICK_MS} ms ${sentBy(from.effective(), prefix)} is sent, and taken ${takenBy(to.effective(), prefix).join()}`,
              );
        for (const end of ends) end.pass(TICK_MS);
      }
    });
    fc.assert(holds, { numRuns: 60 });
  });
});

test('the plan of a step is made once', () => {
  const steps = open();
  steps.to(planOf({ [NEAR]: 'GENEVE' }));
  const first = steps.effective();
  steps.pass(1000);
  expect(steps.effective()).toBe(first);
  steps.to(planOf({ [NEAR]: 'GENEVE' }));
  expect(steps.effective()).not.toBe(first);
});
