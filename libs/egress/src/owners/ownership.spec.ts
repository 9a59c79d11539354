import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { EgressNodeSlice, EgressNodeSliceSpec } from '@unbounded/crds';
import { GROUP_VERSION } from '@unbounded/crds';
import { type EgressNode, type EgressSnapshot, planEgress, planSliceChanges } from '../index.ts';
import { confirmed, egressPool, node, NOW, snapshot, staticEgress, SUBNETS } from '../testdata.ts';

/** Machines with agents, an API server, and a controller that can stop between any two writes. */
interface Machine {
  readonly number: number;
  isPowered: boolean;
  isAgentUp: boolean;
  isFenced: boolean;
  hasNode: boolean;
  /** Of its Node object. */
  generation: number;
  isSelected: boolean;
  /** What its kernel answers for. */
  held: Set<string>;
  /** Slices that its agent has read and not acted on yet. */
  read: EgressNodeSlice[];
}

const ADDRESSES = ['192.0.2.100', '192.0.2.101', '192.0.2.102', '192.0.2.103'];

class Cluster {
  readonly machines: Machine[] = [1, 2, 3, 4].map((number) => ({
    number,
    isPowered: true,
    isAgentUp: true,
    isFenced: false,
    hasNode: true,
    generation: 1,
    isSelected: true,
    held: new Set(),
    read: [],
  }));
  slices = new Map<string, EgressNodeSlice>();
  rules = new Map(
    ADDRESSES.map((address, index) => [
      `r${index}`,
      staticEgress([{ egressip: address, podSelector: {} }], { name: `r${index}` }),
    ]),
  );

  nodeOf({ number, isPowered, isAgentUp, isFenced, generation, isSelected }: Machine): EgressNode {
    const labels = isSelected ? { egress: 'yes' } : {};
    return node(number, { uid: `uid-n${number}-${generation}`, labels, isAlive: isPowered && isAgentUp, isFenced });
  }

  snapshot(): EgressSnapshot {
    return snapshot({
      rules: [...this.rules.values()],
      pools: [egressPool({ blocks: ['192.0.2.96/28'], nodeSelector: { matchLabels: { egress: 'yes' } } })],
      nodes: this.machines.filter(({ hasNode }) => hasNode).map((machine) => this.nodeOf(machine)),
      slices: [...this.slices.values()],
      now: NOW,
    });
  }

  write(name: string, spec: EgressNodeSliceSpec | undefined): void {
    if (!spec) this.slices.delete(name);
    else {
      const status = this.slices.get(name)?.status ?? { subnets: SUBNETS };
      this.slices.set(name, { apiVersion: GROUP_VERSION, kind: 'EgressNodeSlice', metadata: { name }, spec, status });
    }
  }

  /** The controller makes the first writes of its plan and is stopped; the status of the rules comes last. */
  control(writes: number): void {
    const before = this.snapshot();
    const plan = planEgress(before);
    const changes = planSliceChanges(before.slices, plan.slices);
    for (const { name, spec } of changes.slice(0, writes)) this.write(name, spec);
    if (writes < changes.length) return;
    for (const [name, rule] of this.rules) {
      const { addresses } = plan.ruleStatuses.get(`StaticEgressIP/shop/${name}`)!;
      this.rules.set(name, { ...rule, status: { addresses } });
    }
  }

  read(machine: Machine): void {
    const { name, uid } = this.nodeOf(machine);
    if (machine.isPowered && machine.isAgentUp && machine.hasNode) {
      machine.read = [...this.slices.values()].filter(({ spec }) => spec.nodeName === name && spec.nodeUID === uid);
    }
  }

  /** The agent makes its kernel so, then confirms it: of slices that have changed meanwhile only what it has done. */
  act(machine: Machine): void {
    if (!machine.isPowered || !machine.isAgentUp) return;
    const owned = machine.read.flatMap(({ spec }) => spec.owned ?? []).filter(({ release }) => release !== true);
    machine.held = new Set(owned.map(({ address }) => address));
    for (const slice of machine.read) {
      const current = this.slices.get(slice.metadata.name);
      if (current?.spec.nodeUID === slice.spec.nodeUID) {
        this.slices.set(slice.metadata.name, { ...current, status: { ...confirmed(slice).status, subnets: SUBNETS } });
      }
    }
  }

  /** Addresses that more than one machine answers for. */
  twiceHeld(): string[] {
    const holders = this.machines.filter(({ isPowered }) => isPowered).flatMap(({ held }) => [...held]);
    return holders.filter((address, index) => holders.indexOf(address) !== index);
  }
}

const machineEvents: Readonly<Record<string, (cluster: Cluster, machine: Machine) => void>> = {
  read: (cluster, machine) => cluster.read(machine),
  act: (cluster, machine) => cluster.act(machine),
  sync: (cluster, machine) => {
    cluster.read(machine);
    cluster.act(machine);
  },
  agentStops: (_, machine) => {
    machine.isAgentUp = false;
    machine.read = []; // a new process reads anew
  },
  agentStarts: (_, machine) => {
    machine.isAgentUp = true;
  },
  powerFails: (_, machine) => {
    Object.assign(machine, { isPowered: false, held: new Set(), read: [] });
  },
  powerReturns: (_, machine) => {
    machine.isPowered = true;
  },
  // What an operator states is true: the machine is off.
  isFenced: (_, machine) => {
    Object.assign(machine, { isPowered: false, held: new Set(), read: [], isFenced: true });
  },
  isUnfenced: (_, machine) => {
    machine.isFenced = false;
  },
  nodeIsDeleted: (_, machine) => {
    Object.assign(machine, { isPowered: false, held: new Set(), read: [], hasNode: false });
  },
  nodeIsMade: (_, machine) => {
    if (!machine.hasNode)
      Object.assign(machine, { hasNode: true, isPowered: true, generation: machine.generation + 1 });
  },
  isSelected: (_, machine) => {
    machine.isSelected = !machine.isSelected;
  },
  // Whoever has its token writes what it likes into the status of its slices; the kernel of the machine is as honest as before.
  lies: (cluster, machine) => {
    const made = [0, 1, 2, 5, 9, Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER];
    const slice = cluster.slices.get(`n${machine.number}-0`);
    if (!slice) return;
    const own = new Set((slice.spec.owned ?? []).map(({ address }) => address));
    const others = ADDRESSES.filter((address) => !own.has(address));
    const grants = others.flatMap((address) => made.map((epoch) => ({ address, epoch })));
    const { held = [], released = [] } = slice.status ?? {};
    const status = { ...slice.status, held: [...held, ...grants], released: [...released, ...grants] };
    cluster.slices.set(slice.metadata.name, { ...slice, status });
  },
  sliceIsDeletedByHand: (cluster, machine) => {
    // The status of the rules knows what the slice said, if the plan before was written to its end.
    cluster.control(Number.MAX_SAFE_INTEGER);
    cluster.slices.delete(`n${machine.number}-0`);
  },
};

const clusterEvent = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('control' as const), writes: fc.constantFrom(0, 1, 2, 3, 99, 99) }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('machine' as const),
      what: fc.constantFrom(...Object.keys(machineEvents), 'sync', 'sync', 'sync', 'read', 'act'),
      which: fc.nat(3),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('rule' as const), which: fc.nat(3) }) },
);

/** Everybody does what is to be done, several times; returns addresses that had two owners meanwhile. */
const settle = (cluster: Cluster): string[] => {
  const twice: string[] = [];
  for (let round = 0; round < 6; round++) {
    cluster.control(99);
    for (const machine of cluster.machines) {
      cluster.read(machine);
      cluster.act(machine);
      twice.push(...cluster.twiceHeld());
    }
  }
  return twice;
};

test('never two owners, over any history of machines, agents, operators, rules and a controller that stops at any write', () => {
  const moves = { granted: 0, waited: 0 };
  fc.assert(
    fc.property(fc.array(clusterEvent, { maxLength: 60 }), (events) => {
      const cluster = new Cluster();
      expect(settle(cluster)).toEqual([]);
      for (const event of events) {
        if (event.kind === 'control') cluster.control(event.writes);
        else if (event.kind === 'machine') machineEvents[event.what]!(cluster, cluster.machines[event.which]!);
        else if (!cluster.rules.delete(`r${event.which}`)) {
          const name = `r${event.which}`;
          cluster.rules.set(name, staticEgress([{ egressip: ADDRESSES[event.which]!, podSelector: {} }], { name }));
        }
        expect(cluster.twiceHeld()).toEqual([]);
        const troubles = [...planEgress(cluster.snapshot()).ownerships.values()];
        moves.granted += troubles.filter(({ owner }) => owner !== undefined).length;
        moves.waited += troubles.filter(({ trouble }) => trouble === 'AwaitingRelease').length;
      }
    }),
    { numRuns: 400 },
  );
  expect(Math.min(moves.granted, moves.waited)).toBeGreaterThan(0);
});

test('once everything answers, every address is owned and held by one node, whatever happened before', () => {
  fc.assert(
    fc.property(fc.array(clusterEvent, { maxLength: 40 }), (events) => {
      const cluster = new Cluster();
      for (const event of events) {
        if (event.kind === 'control') cluster.control(event.writes);
        else if (event.kind === 'machine') machineEvents[event.what]!(cluster, cluster.machines[event.which]!);
      }
      for (const machine of cluster.machines) {
        machineEvents['nodeIsMade']!(cluster, machine);
        Object.assign(machine, { isPowered: true, isAgentUp: true, isFenced: false, isSelected: true });
      }
      expect(settle(cluster)).toEqual([]);
      const held = cluster.machines.flatMap((machine) => [...machine.held]);
      expect(held.toSorted()).toEqual(ADDRESSES);
      const { slices } = cluster.snapshot();
      expect(planSliceChanges(slices, planEgress(cluster.snapshot()).slices)).toEqual([]);
    }),
    { numRuns: 200 },
  );
});
