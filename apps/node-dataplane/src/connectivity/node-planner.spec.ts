import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CONNECTIVITY } from '@unbounded/config/ownership';
import { silentLogger } from '@unbounded/telemetry';
import type { NodePlan, TopologyObjects } from '@unbounded/topology';
import { withLocators } from '@unbounded/topology/locators';
import { afterAll, expect, test } from 'vitest';
import { openKeptSections } from '../agent/kept-sections.ts';
import { renderPlan } from '../data-path/render.ts';
import { createNodePlanner } from './node-planner.ts';
import type { Measured } from './measured.ts';
import type { VersionedPlan } from '../section.port.ts';
import { createStateFaults } from '../state/state-faults.ts';
import { objectsFor } from '../testdata.ts';
import type { Snapshot } from '../world/source.port.ts';

const PEER = '100.65.31.0/24';

const folder = mkdtempSync(join(tmpdir(), 'node-planner-'));
afterAll(() => rmSync(folder, { recursive: true }));

const open = (before?: VersionedPlan, hasObjects = true, given = (objects: TopologyObjects) => objects) => {
  let [clockMs, version] = [0, 0];
  let protocol: Parameters<typeof objectsFor>[0] = 'VXLAN';
  const stateDir = mkdtempSync(join(folder, 'state-'));
  const kept = openKeptSections(stateDir, [CONNECTIVITY], createStateFaults()).of(CONNECTIVITY);
  if (before) kept.write(before);
  const snapshot = (): Snapshot => ({
    objects: given(objectsFor(protocol)),
    node: { podCidrs: ['100.65.30.0/24'], internalIps: ['10.1.0.30'], externalIps: [] },
    version: version++, // every look finds something changed, as heartbeats do
  });
  const planner = createNodePlanner({
    nodeName: 'w1',
    protocols: ['GENEVE', 'IPIP', 'None', 'VXLAN', 'WireGuard'],
    source: {
      snapshot: () => (hasObjects ? snapshot() : undefined),
      onChange: () => undefined,
      stop: async () => undefined,
    },
    kept,
    logger: silentLogger,
    now: () => clockMs,
  });
  let measured: Measured = {
    underlay: { device: 'eth0', mtuBytes: 1500 },
    pathMtuBytes: new Map(),
    keys: { publicKey: '5ZqNUjYwTkSgDnjz9kVCoCjmVLGAXR3zR0O2jPuoL0o=', keyGeneration: 0, nextPublicKey: undefined },
    established: new Set(),
    protectedAddresses: [],
  };
  const look = (changes: Partial<Measured> = {}): void => {
    measured = { ...measured, ...changes };
    planner.replan(measured);
  };
  look();
  return {
    planner,
    kept,
    look,
    change: (to: typeof protocol): void => {
      protocol = to;
      look();
    },
    pass: (ms: number): void => {
      for (const end = clockMs + ms; clockMs < end; clockMs += 500) look();
    },
  };
};

const deviceTo = (plan: NodePlan | undefined): string | undefined => {
  const via = plan && renderPlan('ebpf', plan).endpoints.find(({ prefix }) => prefix === PEER)?.via;
  return via && 'nextHop' in via ? via.nextHop.device : undefined;
};
const tunnels = (plan: NodePlan | undefined): string =>
  (plan ? renderPlan('ebpf', plan).tunnels : []).map(({ device }) => device).join();

test('a change of protocol goes its steps by the clock, however often objects change meanwhile', () => {
  const { planner, change, pass } = open();
  change('GENEVE');
  expect([deviceTo(planner.plan), tunnels(planner.plan)]).toEqual(['vxlan0', 'vxlan0,geneve0']);
  expect(planner.nextStepMs).toBe(4000);
  pass(4000);
  expect([deviceTo(planner.plan), tunnels(planner.plan)]).toEqual(['geneve0', 'vxlan0,geneve0']);
  pass(20_000);
  expect([deviceTo(planner.plan), tunnels(planner.plan)]).toEqual(['geneve0', 'geneve0']);
  expect(planner.nextStepMs).toBeUndefined();
});

test('addresses of other nodes that change meanwhile do not hold the steps up, and are sent to at once', () => {
  let address = '10.1.0.31';
  const { planner, change, pass, look } = open(undefined, true, (objects) => ({
    ...objects,
    slices: objects.slices.map((slice) => ({
      ...slice,
      nodes: slice.nodes!.map((node) => (node.name === 'x1' ? { ...node, internalIPs: [address] } : node)),
    })),
  }));
  const sentTo = (): string | undefined => {
    const to = planner.plan!.blocks.find(({ prefix }) => prefix === PEER)!.to;
    return typeof to === 'object' && 'nextHop' in to && 'remoteIp' in to.nextHop ? to.nextHop.remoteIp : undefined;
  };
  change('GENEVE');
  pass(3000);
  expect([deviceTo(planner.plan), sentTo()]).toEqual(['vxlan0', '10.1.0.31']);
  address = '10.1.0.77';
  look();
  expect([deviceTo(planner.plan), sentTo()]).toEqual(['geneve0', '10.1.0.77']);
  expect(planner.nextStepMs).toBe(1000);
});

test('other sections learn the locators of all nodes, and that of this one', () => {
  const { planner } = open(undefined, true, withLocators);
  expect(planner.peers!.locator).toBe('fd4c:0:0:1002::/64');
  expect([...planner.peers!.locators()]).toEqual([
    ['g1', 'fd4c:0:0:1001::/64'],
    ['g2', 'fd4c:0:0:2001::/64'],
    ['w1', 'fd4c:0:0:1002::/64'],
    ['x1', 'fd4c:0:0:1003::/64'],
  ]);
  const { planner: before } = open();
  expect([before.peers!.locator, before.peers!.locators().size]).toEqual([undefined, 0]);
});

test('a change of mind amid the steps begins where they were', () => {
  const { planner, change, pass } = open();
  change('GENEVE');
  pass(5000); // GENEVE is sent by now
  change('VXLAN');
  expect(deviceTo(planner.plan)).toBe('geneve0');
  pass(4000);
  expect(deviceTo(planner.plan)).toBe('vxlan0');
  pass(20_000);
  expect(tunnels(planner.plan)).toBe('vxlan0');
});

test('WireGuard does not wait', () => {
  const { planner, change } = open();
  change('WireGuard');
  expect(deviceTo(planner.plan)).toBe('wg51820');
  expect(tunnels(planner.plan)).toBe('');
});

test('a kept plan stands until there are objects', () => {
  const made = open().planner.plan!;
  expect(open({ version: 1, plan: made }, false).planner.plan).toEqual(made);
});

test('a kept plan of a later version is none, and the next one is kept in its place', () => {
  const made = open().planner.plan!;
  const later = { version: 2, plan: made };
  expect(open(later, false).planner.plan).toBeUndefined();
  const { planner, kept } = open(later);
  expect([planner.plan, kept.read()]).toEqual([made, { version: 1, plan: made }]);
});

test('a node’s own block with an address that it must reach otherwise makes no plan: its bridge would take the address', () => {
  const { planner, look } = open();
  const before = planner.plan!;
  look({ protectedAddresses: [{ address: '100.65.30.9', role: 'an address of the API server' }] });
  expect([planner.plan, planner.isCurrent]).toEqual([{ ...before, problems: planner.problems }, false]);
});

test('a next key of the node gives its links a second lane, which is sent by once it is established', () => {
  const { planner, change, look } = open();
  change('WireGuard');
  const publicKey = '5ZqNUjYwTkSgDnjz9kVCoCjmVLGAXR3zR0O2jPuoL0o=';
  look({ keys: { publicKey, keyGeneration: 0, nextPublicKey: 'new' } });
  expect([deviceTo(planner.plan), planner.isCurrent]).toEqual(['wg51820', true]);
  const { name, peers } = planner.plan!.wireGuard.find((own) => own.name === 'wg58620')!;
  look({ established: new Set(peers.map((peer) => `${name} ${peer.publicKey}`)) });
  expect(deviceTo(planner.plan)).toBe('wg58620');
  look({ keys: { publicKey: 'new', keyGeneration: 1, nextPublicKey: undefined }, established: new Set() });
  expect([deviceTo(planner.plan), planner.plan!.wireGuard.map(({ keyGeneration }) => keyGeneration)]).toEqual([
    'wg58620',
    [1, 1],
  ]);
});

test('a kept plan is not current, and says nothing of the Node', () => {
  const made = open().planner.plan!;
  const kept = { version: 1, plan: made };
  expect(open(kept).planner.node?.internalIps).toEqual(['10.1.0.30']);
  const { planner } = open(kept, false);
  expect([planner.isCurrent, planner.node]).toEqual([false, undefined]);
});
