import type { Cluster, EventRecorder, Node } from '@unbounded/kube';
import { beforeEach, expect, test, vi } from 'vitest';
import { createClusterReporter } from './cluster-reporter.ts';
import { connectivityReport, type ConnectivityState } from '../connectivity/report.ts';
import { createReports } from '../agent/reports.ts';
import { createGatewayReporter } from '../connectivity/gateway-reporter.ts';

/** Keeps what was written and shows it, like the informer of the real source. */
let node: Node | undefined;
let writes: string[];
let events: string[];
/** Types of the conditions of the last apply: the API server takes others of ours away. */
let applied: string[];

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly lastTransitionTime?: string;
}
const conditions = (): Condition[] => (node!.status?.conditions ?? []) as Condition[];
const condition = (type: string): Condition | undefined => conditions().find((entry) => entry.type === type);

const client = {
  mergePatch: async (_name: string, patch: { metadata: { annotations: Record<string, string | null> } }) => {
    writes.push('annotations');
    const merged = Object.entries({ ...node!.metadata.annotations, ...patch.metadata.annotations });
    const annotations = Object.fromEntries(merged.filter((entry): entry is [string, string] => entry[1] !== null));
    node = { ...node!, metadata: { ...node!.metadata, annotations } };
  },
  apply: async (object: { kind: string; status: { conditions: Condition[] } }) => {
    if (object.kind === 'GatewayPoolNode') return void writes.push('gateway');
    writes.push('conditions');
    applied = object.status.conditions.map(({ type }) => type);
    const others = conditions().filter(({ type }) => !object.status.conditions.some((entry) => entry.type === type));
    node = { ...node!, status: { ...node!.status, conditions: [...others, ...object.status.conditions] } };
  },
};
const open = (...others: readonly string[]) => {
  const cluster = { client: () => client } as unknown as Cluster;
  const reporter = createClusterReporter({
    cluster,
    nodeName: 'n1',
    node: () => node,
    events: { record: ({ note }: { note: string }) => void events.push(note) } as unknown as EventRecorder,
  });
  const gateway = createGatewayReporter(cluster, 'n1');
  const reports = createReports([{ name: 'connectivity', isEssential: true }, ...others.map((name) => ({ name }))]);
  const report = async (state: ConnectivityState): Promise<void> => {
    const written = connectivityReport(state, (routes, signal) => gateway.report(routes, { signal }));
    await reporter.report(reports.reported('connectivity', written));
    await written.write?.(new AbortController().signal);
  };
  /** Of another section. */
  const fail = (failure: { reason: string; message: string }): Promise<void> =>
    reporter.report(reports.failed('other', failure));
  const other = (): Promise<void> =>
    reporter.report(reports.reported('other', { problems: [], annotations: {}, events: [] }));
  return { report, fail, other };
};

const fine: ConnectivityState = {
  publicKey: 'k',
  keyGeneration: 0,
  nextPublicKey: undefined,
  tunnelMtuBytes: 1420,
  protocols: ['VXLAN', 'WireGuard'],
  routesNodes: true,
  networkReady: true,
  problems: [],
  paths: undefined,
  moves: [],
  repairs: [],
  forwarding: undefined,
  routes: undefined,
};
const problem = { reason: 'ForeignLink', message: 'a link named vxlan0' };

beforeEach(() => {
  node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1' },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  } as unknown as Node;
  [writes, events] = [[], []];
});

test('what peers need and how the network is are written once', async () => {
  const reporter = open();
  await reporter.report(fine);
  expect(writes).toEqual(['annotations', 'conditions']);
  expect(Object.values(node!.metadata.annotations!)).toEqual([
    'k',
    '1420',
    'VXLAN,WireGuard',
    'node-addresses,node-cidrs,locators',
  ]);
  expect(condition('NetworkUnavailable')?.status).toBe('False');
  expect(condition('Ready')?.status).toBe('True');
  await reporter.report(fine);
  expect(writes).toHaveLength(2);
});

test('keys change together, and what a node never had or has no more is not there', async () => {
  const reporter = open();
  const keys = (): string[] =>
    ['wg-pubkey', 'wg-key-generation', 'wg-next-pubkey'].map(
      (name) => node!.metadata.annotations![`net.unbounded-cloud.io/${name}`] ?? '-',
    );
  await reporter.report({ ...fine, nextPublicKey: 'l' });
  expect(keys()).toEqual(['k', '-', 'l']);
  await reporter.report({ ...fine, publicKey: 'l', keyGeneration: 1 });
  expect(keys()).toEqual(['l', '1', '-']);
  expect(writes.filter((write) => write === 'annotations')).toHaveLength(2);
});

test('a restarted agent that finds everything said writes nothing', async () => {
  await open().report(fine);
  await open().report(fine);
  expect(writes).toHaveLength(2);
});

test('an agent whose network never comes up is degraded, whatever the former one said, and takes nothing of that away', async () => {
  await open().report(fine);
  const successor = open('other');
  await successor.fail(problem);
  expect(condition('UnboundedNetworkDegraded')).toMatchObject({ status: 'True', reason: 'ForeignLink' });
  expect(applied.toSorted()).toEqual(['NetworkUnavailable', 'UnboundedNetworkDegraded']);
  const before = writes.length;
  await successor.fail(problem);
  expect(writes).toHaveLength(before);
  await successor.other();
  expect(applied).toEqual(['NetworkUnavailable']); // the other section’s problem has ended, and nobody can say yet that all is well
  await successor.report(fine);
  expect(condition('UnboundedNetworkDegraded')?.status).toBe('False');
});

test('before the first plan the network is unavailable', async () => {
  await open().report({ ...fine, networkReady: false });
  expect(condition('NetworkUnavailable')?.status).toBe('True');
});

test('a problem is a condition and one Event, and a new Event when it comes back', async () => {
  const reporter = open();
  await reporter.report({ ...fine, problems: [problem] });
  await reporter.report({ ...fine, problems: [problem] });
  expect(condition('UnboundedNetworkDegraded')).toMatchObject({
    status: 'True',
    reason: 'ForeignLink',
    message: problem.message,
  });
  expect(events).toEqual([problem.message]);
  await reporter.report(fine);
  expect(condition('UnboundedNetworkDegraded')?.status).toBe('False');
  await reporter.report({ ...fine, problems: [problem] });
  expect(events).toHaveLength(2);
});

test('the time of the last transition stays while the status does', async () => {
  const reporter = open();
  await reporter.report({ ...fine, problems: [problem] });
  const since = condition('UnboundedNetworkDegraded')?.lastTransitionTime;
  await reporter.report({ ...fine, problems: [problem, { reason: 'MapFull', message: 'map x' }] });
  expect(condition('UnboundedNetworkDegraded')?.lastTransitionTime).toBe(since);
});

test('a gateway says what lies behind it when that changes, and that it lives from time to time', async () => {
  vi.useFakeTimers();
  const reporter = open();
  const told = async (source: string): Promise<number> => {
    await reporter.report({ ...fine, routes: { '100.65.0.0/16': { type: 'PodCidr', source, paths: [] } } });
    return writes.filter((write) => write === 'gateway').length;
  };
  expect([await told('a'), await told('a'), await told('b')]).toEqual([1, 1, 2]);
  vi.advanceTimersByTime(15_000);
  expect(await told('b')).toBe(3);
  vi.useRealTimers();
});

test('while the Node is not there nothing is said', async () => {
  node = undefined;
  await open().report({ ...fine, problems: [problem] });
  expect([writes, events]).toEqual([[], []]);
});

test('a node whose peers have a relay says which go over it, and no more when none has', async () => {
  const reporter = open();
  const relayed = Array.from({ length: 7 }, (_, index) => `g${index} (wg51820: probes were not answered)`);
  await reporter.report({ ...fine, paths: { total: 9, relayed: [] } });
  expect(condition('UnboundedRelayed')).toMatchObject({ status: 'False', message: 'all of 9 paths are direct' });
  await reporter.report({ ...fine, paths: { total: 9, relayed } });
  expect(condition('UnboundedRelayed')).toMatchObject({ status: 'True', reason: 'Relayed' });
  expect(condition('UnboundedRelayed')).toMatchObject({
    message: expect.stringMatching(/^7 of 9 paths go over the relay: g0 \(wg51820: .*, g4 \([^)]*\), and 2 more$/),
  });
  expect(condition('UnboundedNetworkDegraded')?.status).toBe('False');
  const before = writes.length;
  await reporter.report(fine);
  expect(writes).toHaveLength(before + 1); // without ours, which the API server then takes away
});

test('moves between direct and the relay are one Event', async () => {
  await open().report({ ...fine, moves: ['path to g1 (wg51820) changed from direct to the relay: why', 'another'] });
  expect(events).toEqual(['path to g1 (wg51820) changed from direct to the relay: why; another']);
});
