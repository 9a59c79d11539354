import { createLogger } from '@unbounded/telemetry';
import type { NodePlan } from '@unbounded/topology';
import { expect, test } from 'vitest';
import type { DataPathKind } from '../data-path/kernel-plan.ts';
import { renderPlan } from '../data-path/render.ts';
import { type KeptPlan, keptPlanOf, type PlanStore } from './kept-plan.ts';
import { createNodePlanner } from './node-planner.ts';
import type { Measured } from './measured.ts';
import { objectsFor } from '../testdata.ts';
import type { Snapshot } from '../world/source.port.ts';

const PEER = '100.65.31.0/24';

const open = (kept?: KeptPlan, hasObjects = true) => {
  let [clockMs, version] = [0, 0];
  let protocol: Parameters<typeof objectsFor>[0] = 'VXLAN';
  let file = kept;
  const planFile: PlanStore = {
    read: () => file,
    write: (plan) => void (file = plan),
  };
  const snapshot = (): Snapshot => ({
    objects: objectsFor(protocol),
    node: { podCidrs: ['100.65.30.0/24'], internalIps: ['10.1.0.30'], externalIps: [] },
    version: version++, // every look finds something changed, as heartbeats do
  });
  const planner = createNodePlanner({
    nodeName: 'w1',
    protocols: ['GENEVE', 'IPIP', 'None', 'VXLAN', 'WireGuard'],
    dataplaneKind: 'ebpf',
    source: {
      snapshot: () => (hasObjects ? snapshot() : undefined),
      onChange: () => undefined,
      stop: async () => undefined,
    },
    planFile,
    logger: createLogger({ name: 'test', destination: { write: () => undefined } }),
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

test('a kept plan stands until there are objects, whichever data path it was for', () => {
  const made = open().planner.plan!;
  expect(open(keptPlanOf(made, 'ebpf'), false).planner.plan).toEqual(made);
  expect(open(keptPlanOf(made, 'netlink'), false).planner.plan).toEqual(made);
});

test('a plan that an agent without sections kept stands, unless it is for the other data path', () => {
  const made = open().planner.plan!;
  const former = (kind: DataPathKind): KeptPlan => renderPlan(kind, made);
  const { plan } = open(former('ebpf'), false).planner;
  expect(renderPlan('ebpf', plan!)).toEqual(former('ebpf'));
  expect(open(former('netlink'), false).planner.plan).toBeUndefined();
  expect(open(former('netlink')).planner.plan).toEqual(made);
});

test('a plan of a later version of the section counts by what was rendered of it', () => {
  const made = open().planner.plan!;
  const kept = keptPlanOf(made, 'ebpf');
  const later: KeptPlan = { ...kept, sections: { connectivity: { version: 2, plan: { ...made, blocks: [] } } } };
  expect(renderPlan('ebpf', open(later, false).planner.plan!)).toEqual(renderPlan('ebpf', made));
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
  const kept = keptPlanOf(made, 'ebpf');
  expect(open(kept).planner.node?.internalIps).toEqual(['10.1.0.30']);
  const { planner } = open(kept, false);
  expect([planner.isCurrent, planner.node]).toEqual([false, undefined]);
});
