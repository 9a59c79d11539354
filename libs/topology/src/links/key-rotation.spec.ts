import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { competingLanes, rotationWaits, type RotationFacts, type WaitReason } from './key-rotation.ts';
import { laneId } from './lanes.ts';
import { findMember, planNode } from '../node.plan.ts';
import { parseWorld } from '../world/parse-world.ts';
import { planIn } from '../explain/plan-table.ts';
import type { NodePlan } from '../plan.ts';
import { cluster, keyOf } from '../testdata.ts';
import type { TopologyObjects } from '../world/world.ts';

/** Two nodes that exchange their keys, step by step and in any order, until a packet is sent that nobody takes. */

interface Keys {
  readonly generation: number;
  readonly current: string;
  readonly next: string | undefined;
}

interface Node {
  readonly name: string;
  keys: Keys;
  /** What it has heard of the other. */
  heard: Keys;
  /** Handshakes that its kernel knows of. */
  readonly handshakes: Set<string>;
  /** What its kernel holds. */
  plan: NodePlan;
}

interface Link {
  readonly name: string;
  readonly objects: TopologyObjects;
  readonly ends: readonly [string, string];
}

const links: Link[] = [
  {
    name: 'nodes of a mesh',
    objects: cluster({ sites: 1, gateways: 0, workers: 2, protocol: 'WireGuard' }),
    ends: ['s1-w1', 's1-w2'],
  },
  {
    name: 'a worker and a gateway',
    objects: cluster({ sites: 1, gateways: 1, workers: 1, protocol: 'WireGuard' }),
    ends: ['s1-w1', 's1-g1'],
  },
  {
    name: 'gateways of two pools',
    objects: cluster({ sites: 2, gateways: 1, workers: 0, protocol: 'WireGuard' }),
    ends: ['s1-g1', 's2-g1'],
  },
];

const keyAt = (node: string, generation: number): string => keyOf(`k${generation}${node.replaceAll('-', '')}`);

const setKeys = (objects: TopologyObjects, node: string, { generation, current, next }: Keys): TopologyObjects => {
  const change = <T extends { readonly name: string }>(entry: T): T =>
    entry.name === node
      ? {
          ...entry,
          wireGuardPublicKey: current,
          wireGuardKeyGeneration: generation,
          ...(next === undefined ? {} : { wireGuardNextPublicKey: next }),
        }
      : entry;
  return {
    ...objects,
    slices: objects.slices.map((slice) => ({ ...slice, nodes: (slice.nodes ?? []).map(change) })),
    gatewayPools: objects.gatewayPools.map((pool) => ({
      ...pool,
      status: { ...pool.status, nodes: (pool.status?.nodes ?? []).map(change) },
    })),
  };
};

const replan = ({ objects }: Link, node: Node, other: Node): void => {
  const world = parseWorld(setKeys(setKeys(objects, node.name, node.keys), other.name, node.heard));
  const member = findMember(world, node.name)!;
  node.plan = planNode(world, { member, underlayMtuBytes: 1500, established: node.handshakes });
  const lanes = new Set(
    node.plan.wireGuard.flatMap(({ name, peers }) => peers.map(({ publicKey }) => laneId(name, publicKey))),
  );
  for (const id of node.handshakes) if (!lanes.has(id)) node.handshakes.delete(id);
};

const publicKeyOf = ({ keys }: Node, generation: number): string | undefined =>
  generation === keys.generation ? keys.current : generation === keys.generation + 1 ? keys.next : undefined;

/** The lane at the other end that takes what is sent on ours; undefined: nobody does. */
const facingLane = (node: Node, other: Node, device: string): { id: string; generation: number } | undefined => {
  const own = node.plan.wireGuard.find(({ name }) => name === device)!;
  const peer = own.peers.find((entry) => entry.node === other.name)!;
  const port = Number(peer.endpoint!.split(':').at(-1));
  const theirs = other.plan.wireGuard.find(({ listenPort }) => listenPort === port);
  const ownKey = publicKeyOf(node, own.keyGeneration ?? 0);
  if (!theirs || ownKey === undefined || publicKeyOf(other, theirs.keyGeneration ?? 0) !== peer.publicKey)
    return undefined;
  if (!theirs.peers.some(({ publicKey }) => publicKey === ownKey)) return undefined;
  return { id: laneId(theirs.name, ownKey), generation: theirs.keyGeneration ?? 0 };
};

const sendingDevice = (node: Node, other: Node): string => {
  const hops = node.plan.blocks.flatMap(({ to }) =>
    typeof to === 'object' && 'nextHop' in to && 'device' in to.nextHop ? [to.nextHop] : [],
  );
  return hops.find((hop) => hop.node === other.name)!.device;
};

const devicesTo = (node: Node, other: Node): string[] =>
  node.plan.wireGuard.filter(({ peers }) => peers.some((peer) => peer.node === other.name)).map(({ name }) => name);

const factsOf = (node: Node, other: Node, isProbed: boolean): RotationFacts => ({
  plan: node.plan,
  generation: node.keys.generation,
  lane: (id) => ({
    established: node.handshakes.has(id),
    quiet: facingLane(other, node, sendingDevice(other, node))?.id !== id,
  }),
  isAlive: (name) => name === other.name,
  probe: (name) => {
    if (!isProbed || name !== other.name) return undefined;
    return other.heard.next === node.keys.next ? 'aware' : 'unaware';
  },
});

type Action = 'begin' | 'hear' | 'replan' | 'handshake' | 'half a handshake' | 'promote';
type Step = readonly [who: 0 | 1, action: Action, which: number];

const act = (link: Link, [node, other]: readonly [Node, Node], [, action, which]: Step, isProbed: boolean): void => {
  const { generation, current, next } = node.keys;
  switch (action) {
    case 'begin':
      if (next === undefined) node.keys = { generation, current, next: keyAt(node.name, generation + 1) };
      break;
    case 'hear':
      node.heard = other.keys;
      break;
    case 'handshake':
    case 'half a handshake': {
      const devices = devicesTo(node, other);
      const device = devices[which % devices.length]!;
      const facing = facingLane(node, other, device);
      if (!facing) return;
      const own = node.plan.wireGuard.find(({ name }) => name === device)!;
      node.handshakes.add(laneId(device, own.peers.find((peer) => peer.node === other.name)!.publicKey));
      if (action === 'handshake') other.handshakes.add(facing.id); // else the confirmation is still on its way
      return;
    }
    case 'promote':
      if (next === undefined || rotationWaits(factsOf(node, other, isProbed)).size > 0) return;
      node.keys = { generation: generation + 1, current: next, next: undefined };
      break;
    case 'replan':
  }
  replan(link, node, other);
};

const start = (link: Link): [Node, Node] => {
  const [a, b] = link.ends.map((name) => ({ generation: 0, current: keyAt(name, 0), next: undefined }));
  const node = (index: 0 | 1, keys: Keys, heard: Keys): Node => ({
    name: link.ends[index],
    keys,
    heard,
    handshakes: new Set(),
    plan: undefined as unknown as NodePlan,
  });
  const nodes: [Node, Node] = [node(0, a!, b!), node(1, b!, a!)];
  replan(link, nodes[0], nodes[1]);
  replan(link, nodes[1], nodes[0]);
  return nodes;
};

const ACTIONS = [
  'begin',
  'hear',
  'hear',
  'replan',
  'replan',
  'handshake',
  'handshake',
  'half a handshake',
  'promote',
] as const;
const steps = fc.array(fc.tuple(fc.constantFrom<0 | 1>(0, 1), fc.constantFrom<Action>(...ACTIONS), fc.nat(3)), {
  minLength: 20,
  maxLength: 240,
});

describe.each(links)('two ends that exchange keys in any order: $name', (link) => {
  test('send nothing that the other does not take', () => {
    let rotations = 0;
    fc.assert(
      fc.property(steps, fc.boolean(), (all, isProbed) => {
        const nodes = start(link);
        for (const step of all) {
          const [node, other] = step[0] === 0 ? nodes : ([nodes[1], nodes[0]] as const);
          act(link, [node, other], step, isProbed);
          for (const [from, to] of [nodes, [nodes[1], nodes[0]]] as const)
            expect(facingLane(from, to, sendingDevice(from, to)), `${from.name} after ${step.join(' ')}`).toBeDefined();
        }
        rotations += nodes[0].keys.generation + nodes[1].keys.generation;
      }),
      { numRuns: 150 },
    );
    expect(rotations).toBeGreaterThan(10); // the steps do lead somewhere
  });

  test('come to an end from wherever they are', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const nodes = start(link);
        for (const step of all) act(link, step[0] === 0 ? nodes : [nodes[1], nodes[0]], step, true);
        for (let round = 0; round < 6; round++)
          for (const action of ['hear', 'handshake', 'replan', 'promote'] as const)
            for (const pair of [nodes, [nodes[1], nodes[0]]] as const)
              for (const which of action === 'handshake' ? [0, 1, 2, 3] : [0])
                act(link, pair, [0, action, which], true);
        expect(nodes.map(({ keys }) => keys.next)).toEqual([undefined, undefined]);
        expect(nodes.map(({ plan }) => competingLanes(plan).size)).toEqual([0, 0]);
      }),
      { numRuns: 60 },
    );
  });
});

describe('a rotation', () => {
  const objects = setKeys(links[0]!.objects, 's1-w1', { generation: 0, current: keyOf('s1w1'), next: keyOf('new') });
  const plan = planIn(objects, 's1-w1');
  const waits = (changes: Partial<RotationFacts>): Record<string, WaitReason> =>
    Object.fromEntries(
      rotationWaits({
        plan,
        generation: 0,
        lane: () => ({ established: true, quiet: true }),
        isAlive: () => true,
        probe: () => 'aware',
        ...changes,
      }),
    );

  test.each<[string, Partial<RotationFacts>, WaitReason | undefined]>([
    ['waits for nobody who sends by the new key', {}, undefined],
    ['waits for a handshake', { lane: () => ({ established: false, quiet: true }) }, 'NoHandshake'],
    ['waits for who still sends by the old key', { lane: () => ({ established: true, quiet: false }) }, 'OldKeyInUse'],
    ['waits for a peer whose agent is dead', { probe: () => 'silent' }, 'AgentSilent'],
    ['waits for a peer that has not heard of it', { probe: () => 'unaware' }, 'Unaware'],
    ['does not ask probes where there are none', { probe: () => undefined }, undefined],
    ['does not wait for a node that is off', { isAlive: () => false, probe: () => 'silent' }, undefined],
    [
      'waits for a peer of an unencrypted link that answers',
      { isAlive: () => false, probe: () => 'unaware' },
      'Unaware',
    ],
  ])('%s', (_, changes, reason) => {
    expect(waits(changes)).toEqual(reason === undefined ? {} : { 's1-w2': reason });
  });

  test('has competing lanes, and a node at rest has none', () => {
    expect([...competingLanes(plan)].sort()).toEqual([
      laneId('wg51820', keyOf('s1w2')),
      laneId('wg58620', keyOf('s1w2')),
    ]);
    expect(competingLanes(planIn(links[0]!.objects, 's1-w1')).size).toBe(0);
  });
});
