import { silentLogger } from '@unbounded/telemetry';
import type { NodePlan, TopologyObjects } from '@unbounded/topology';
import { beforeEach, expect, test } from 'vitest';
import type { StateFile } from './kernel/state-file.ts';
import { createNodePlanner, type NodePlanner } from './node-planner.ts';
import { objectsFor } from './testdata.ts';
import type { Snapshot } from './world/source.port.ts';

/** What a node goes on with while the API server, or a controller, is away. */

const UNDERLAY = { device: 'eth0', mtuBytes: 1500 };

let snapshot: Snapshot | undefined;
let kept: NodePlan | undefined;
const planFile: StateFile<NodePlan> = {
  read: () => kept,
  write: (plan) => void (kept = plan),
  remove: () => void (kept = undefined),
};

const start = (): NodePlanner =>
  createNodePlanner({
    nodeName: 'w1',
    protocols: ['VXLAN', 'WireGuard'],
    dataplaneKind: 'ebpf',
    source: { snapshot: () => snapshot, onChange: () => undefined, stop: async () => undefined },
    planFile,
    logger: silentLogger,
    now: () => 0,
  });
const see = (objects: TopologyObjects | undefined): void => {
  const node = { podCidrs: ['100.65.30.0/24'], internalIps: ['10.1.0.30'], externalIps: [] };
  snapshot = objects && { objects, node, version: (snapshot?.version ?? 0) + 1 };
};
const pass = (planner: NodePlanner): NodePlan | undefined => {
  planner.replan({
    underlay: UNDERLAY,
    pathMtuBytes: new Map(),
    keys: { publicKey: 'own', keyGeneration: 0, nextPublicKey: undefined },
    established: new Set(),
  });
  return planner.plan;
};

beforeEach(() => {
  snapshot = undefined;
  kept = undefined;
});

test('while the objects are away the last plan stands', () => {
  see(objectsFor('VXLAN'));
  const planner = start();
  const plan = pass(planner);
  expect(plan?.groups).toHaveLength(1);
  see(undefined);
  expect(pass(planner)).toEqual(plan);
});

test('an agent that starts while they are away goes on with the plan of the one before', () => {
  see(objectsFor('VXLAN'));
  const plan = pass(start());
  see(undefined);
  expect(pass(start())).toEqual(plan);
});

test('a node that no slice lists any more keeps its plan: it may only be on its way to another', () => {
  see(objectsFor('VXLAN'));
  const planner = start();
  const plan = pass(planner);
  see({ ...objectsFor('VXLAN'), slices: [] });
  expect(pass(planner)).toEqual(plan);
});

test('without objects and without a plan of before there is none', () => {
  expect(pass(start())).toBeUndefined();
});
