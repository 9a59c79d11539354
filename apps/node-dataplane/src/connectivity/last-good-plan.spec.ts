import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CONNECTIVITY, keptPlanFile } from '@unbounded/config/ownership';
import { silentLogger } from '@unbounded/telemetry';
import type { NodePlan, ProtectedAddress, TopologyObjects } from '@unbounded/topology';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openKeptSections } from '../agent/kept-sections.ts';
import { createNodePlanner, type NodePlanner } from './node-planner.ts';
import { createStateFaults } from '../state/state-faults.ts';
import { objectsFor } from '../testdata.ts';
import type { Snapshot } from '../world/source.port.ts';

/** What a node goes on with while the API server, or a controller, is away. */

const UNDERLAY = { device: 'eth0', mtuBytes: 1500 };

const API: ProtectedAddress = { address: '203.0.113.99', role: 'an address of the API server' };

let snapshot: Snapshot | undefined;
let stateDir: string;

const start = (): NodePlanner =>
  createNodePlanner({
    nodeName: 'w1',
    protocols: ['VXLAN', 'WireGuard'],
    source: { snapshot: () => snapshot, onChange: () => undefined, stop: async () => undefined },
    kept: openKeptSections(stateDir, [CONNECTIVITY], createStateFaults()).of(CONNECTIVITY),
    logger: silentLogger,
    now: () => 0,
  });
const see = (objects: TopologyObjects | undefined): void => {
  const node = { podCidrs: ['100.65.30.0/24'], internalIps: ['10.1.0.30'], externalIps: [] };
  snapshot = objects && { objects, node, version: (snapshot?.version ?? 0) + 1 };
};
const pass = (planner: NodePlanner, protectedAddresses: readonly ProtectedAddress[] = []): NodePlan | undefined => {
  planner.replan({
    underlay: UNDERLAY,
    pathMtuBytes: new Map(),
    keys: { publicKey: 'own', keyGeneration: 0, nextPublicKey: undefined },
    established: new Set(),
    protectedAddresses,
  });
  return planner.plan;
};

beforeEach(() => {
  snapshot = undefined;
  stateDir = mkdtempSync(join(tmpdir(), 'last-good-plan-'));
});
afterEach(() => rmSync(stateDir, { recursive: true }));

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

test('a node that no slice lists any more keeps its plan and says why: it may only be on its way to another', () => {
  see(objectsFor('VXLAN'));
  const planner = start();
  const plan = pass(planner)!;
  see({ ...objectsFor('VXLAN'), slices: [] });
  const { problems, ...held } = pass(planner)!;
  expect({ ...held, problems: plan.problems }).toEqual(plan);
  expect(problems).toEqual([
    { reason: 'NodeNotListed', message: expect.stringContaining('lists node w1: ') },
    ...plan.problems,
  ]);
  expect([planner.problems, planner.isCurrent]).toEqual([problems, false]);
  see(objectsFor('VXLAN'));
  expect([pass(planner), planner.problems, planner.isCurrent]).toEqual([plan, [], true]);
});

test('a node without a plan says why it has none', () => {
  see({ ...objectsFor('VXLAN'), slices: [] });
  const planner = start();
  expect(pass(planner)).toBeUndefined();
  expect(planner.problems.map(({ reason }) => reason)).toEqual(['NodeNotListed']);
});

test('a node whose own block holds the API server keeps its plan and says so, or has none and says so', () => {
  const api = { ...API, address: '100.65.30.9' };
  see(objectsFor('VXLAN'));
  const planner = start();
  const plan = pass(planner)!;
  const held = pass(planner, [api])!;
  expect(held.podCidrs).toEqual(plan.podCidrs);
  expect(held.problems.map(({ reason }) => reason)).toEqual(['PodCIDRsOverlapUnderlay']);
  rmSync(keptPlanFile(CONNECTIVITY, stateDir));
  const fresh = start();
  expect([pass(fresh, [api]), fresh.problems.map(({ reason }) => reason)]).toEqual([
    undefined,
    ['PodCIDRsOverlapUnderlay'],
  ]);
});

test('objects of which no plan can be made leave the last one, which is not current until they can', () => {
  see(objectsFor('VXLAN'));
  const planner = start();
  const plan = pass(planner)!;
  see({ ...objectsFor('VXLAN'), sites: undefined as never });
  for (const _ of [1, 2]) {
    expect(pass(planner)!.problems.map(({ reason }) => reason)).toEqual(['PlanFailed']);
    expect(planner.isCurrent).toBe(false);
  }
  see(objectsFor('VXLAN'));
  expect([pass(planner), planner.isCurrent]).toEqual([plan, true]);
});

/** The objects, with a Site more whose block holds the API server. */
const withApiBlock = (): TopologyObjects => {
  const objects = objectsFor('VXLAN');
  const [first] = objects.sites;
  const spec = {
    ...first!.spec,
    nodeCidrs: ['10.9.0.0/24'],
    podCidrAssignments: [{ cidrBlocks: ['203.0.113.99/32'] }],
  };
  return { ...objects, sites: [...objects.sites, { ...first!, metadata: { name: 's9' }, spec }] };
};
const prefixesOf = (plan: NodePlan | undefined): string[] =>
  plan ? [...plan.blocks.map(({ prefix }) => prefix), ...plan.contained] : [];

test('a kept plan that routes the API server’s address is cleaned, so that the node can hear of the correction', () => {
  see(withApiBlock());
  const poisoned = pass(start());
  expect(prefixesOf(poisoned)).toContain('203.0.113.99/32');
  see(undefined);
  const plan = pass(start(), [API]);
  expect(prefixesOf(plan)).toEqual(prefixesOf(poisoned).filter((prefix) => prefix !== '203.0.113.99/32'));
  expect(plan?.problems.map(({ reason }) => reason)).toContain('RouteOverlapsUnderlay');
  expect(plan?.blocks).toEqual(poisoned?.blocks);
});

test('a plan with the API server’s address is not made, and a clean kept one stays as it is', () => {
  see(withApiBlock());
  expect(prefixesOf(pass(start(), [API]))).not.toContain('203.0.113.99/32');
  see(undefined);
  const planner = start();
  expect(pass(planner, [API])).toBe(pass(planner, [API]));
});

test.each([
  ['is deleted', { sites: objectsFor('VXLAN').sites.slice(1) }],
  ['has nodeCidrs that hold no node any more', { slices: [] }],
])('a node whose Site %s keeps its plan with its bridge', (_, changes) => {
  see(objectsFor('VXLAN'));
  const planner = start();
  const plan = pass(planner);
  see({ ...objectsFor('VXLAN'), ...changes });
  const { problems: _problems, ...held } = pass(planner)!;
  expect({ ...held, problems: plan!.problems }).toEqual(plan);
  expect(held.manageCni).toBe(true);
  see(objectsFor('VXLAN'));
  expect(pass(planner)?.problems).toEqual(plan!.problems);
});

test('a gateway that its pool lists without a Site keeps its plan, and reports it until the Site is there again', () => {
  const gateway = (objects: TopologyObjects, siteName?: string): TopologyObjects => ({
    ...objects,
    slices: [],
    gatewayPools: objects.gatewayPools.map((pool, index) =>
      index > 0
        ? pool
        : {
            ...pool,
            status: {
              nodes: pool.status!.nodes!.map((node) => ({
                ...node,
                name: 'w1',
                podCIDRs: ['100.65.30.0/24'],
                siteName,
              })),
            },
          },
    ) as TopologyObjects['gatewayPools'],
  });
  see(gateway(objectsFor('WireGuard'), 's1'));
  const planner = start();
  const plan = pass(planner);
  expect([plan?.role, plan?.manageCni]).toEqual(['gateway', true]);
  for (const lost of [
    gateway(objectsFor('WireGuard'), undefined),
    { ...gateway(objectsFor('WireGuard'), 's1'), sites: [] },
  ]) {
    see(lost);
    const held = pass(planner)!;
    expect(held.problems.map(({ reason }) => reason)).toEqual(['SiteMissing']);
    expect({ ...held, problems: [] }).toEqual({ ...plan, problems: [] });
    see(lost); // and again
    expect(pass(planner)!.problems).toHaveLength(1);
  }
  see(gateway(objectsFor('WireGuard'), 's1'));
  expect(pass(planner)?.problems).toEqual([]);
});

test('without objects and without a plan of before there is none', () => {
  expect(pass(start())).toBeUndefined();
});
