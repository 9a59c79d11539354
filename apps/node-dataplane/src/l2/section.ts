import { dirname, join } from 'node:path';
import { DEVICES, L2_ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { L2_LAYOUT_VERSION } from '@unbounded/bpf-maps/l2';
import { fdbEntryKind, labels, neighborKind, type NetworkEndpoint } from '@unbounded/crds';
import { parsePrefix } from '@unbounded/ip';
import { type Cluster, clientOf } from '@unbounded/kube';
import { endpointKey, type L2Plan, type L2Snapshot, planL2 } from '@unbounded/l2';
import type { RouteEvent } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import type { AgentConfig } from '../agent.config.ts';
import { L2_CHAINS } from '../kernel/base-chains.ts';
import type { OverlayPeers } from '../kernel/overlay-peers.ts';
import type { Section, SectionContext, SectionPass, SectionType } from '../section.port.ts';
import { createProblemLog } from '../world/problem-log.ts';
import { createAttaching } from './attach.ts';
import { createClaims } from './claims.ts';
import { l2Condition, problemOf } from './condition.ts';
import { listPorts } from './devices.ts';
import { createFrameMetrics, type PortOwners } from './frame-metrics.ts';
import { createTurns, isInPlan, type Turns } from './in-force.ts';
import { createL2Kernel, type L2Kernel } from './l2-kernel.ts';
import { l2SnapshotOf } from './l2-inputs.ts';
import { createL2Source, type L2Objects, type L2Source } from './l2-source.ts';
import { isPortName, L2_SECTION, portName } from './names.ts';
import { openPorts } from './ports.ts';

/**
 * Stretched L2 at this node: Networks whose frames travel between nodes over the links of connectivity. What is in the kernel stays when the
 * agent ends, and its successor goes on from there: there is no kept plan, since what is pinned is one.
 */

const EVERY_MS = 10_000;
/** The controller has to number a new Network first. */
const ADD_WITHIN_MS = 20_000;

/** Not by which nodes reach each other: ends of pods, and what sections have besides. */
const NOT_OVERLAY: ReadonlySet<string> = new Set([
  DEVICES.bridge,
  DEVICES.echo,
  DEVICES.egress,
  DEVICES.l2Entry,
  DEVICES.l2Exit,
]);

type L2Config = Pick<AgentConfig, 'bpffsDir' | 'dataplane' | 'l2BpfObject'>;

/** Beside those of the overlay's own layouts. */
const l2PinFolder = (bpffsDir: string): string => join(dirname(bpffsDir), L2_SECTION, `v${L2_LAYOUT_VERSION}`);

const concernsL2 = ({ subject, value }: RouteEvent): boolean =>
  (subject === 'link' && (isPortName(value.name) || value.name === DEVICES.l2Entry || value.name === DEVICES.l2Exit)) ||
  (subject === 'route' && value.protocol === L2_ROUTE_PROTOCOL);

const withoutLocator = (node: string): Problem => ({
  reason: 'NoLocator',
  message: `Node ${node} has no locator, so that its pods in Networks reach no other node and none reaches them: set spec.l2.locatorPrefix of Mesh default, and look at the conditions of the Site of the node`,
});

const ownersOf = (
  plan: L2Plan,
  devices: ReadonlyMap<string, number>,
  endpoints: ReadonlyMap<string, string>,
): PortOwners => {
  const names = new Map(plan.networks.map(({ number, name }) => [number, name]));
  return new Map(
    plan.ports.flatMap(({ device, network }) => {
      const [ifindex, endpoint] = [devices.get(device), endpoints.get(device)];
      if (ifindex === undefined || endpoint === undefined) return [];
      return [[ifindex, { network: names.get(network) ?? '', endpoint }] as const];
    }),
  );
};

/** MACs and addresses of a Network: of one that the node hosts as it has them, of another as the API server has them. */
const createTaken = (cluster: Cluster, objects: () => L2Objects | undefined, node: string) => {
  const [stations, neighbors] = [clientOf(cluster, fdbEntryKind), clientOf(cluster, neighborKind)];
  const keysOf = (some: Pick<L2Objects, 'fdbEntries' | 'neighbors'>, network: string): string[] => [
    ...some.neighbors.flatMap(({ spec }) => (spec.network === network ? [spec.ip] : [])),
    ...some.fdbEntries.flatMap(({ spec }) => (spec.network === network ? [spec.mac] : [])),
  ];
  return async (network: string, signal: AbortSignal): Promise<string[]> => {
    const known = objects();
    if (known?.endpoints.some(({ spec }) => spec.network === network && spec.node === node))
      return keysOf(known, network);
    const selection = { labelSelector: `${labels.network}=${network}`, signal };
    const [fdbEntries, found] = await Promise.all([stations.listAll(selection), neighbors.listAll(selection)]);
    return keysOf({ fdbEntries, neighbors: found }, network);
  };
};

/** Pods that join Networks; undefined: there is no API server to say which. */
const openAttaching = (
  { nodeName: node, cluster, net, attachment, trigger }: SectionContext,
  known: {
    readonly objects: () => L2Objects | undefined;
    readonly plan: () => L2Plan | undefined;
    readonly turns: Turns;
  },
) => {
  if (!cluster) return undefined;
  const claims = createClaims(cluster, node);
  const ports = openPorts(net);
  const own = (): readonly NetworkEndpoint[] =>
    (known.objects()?.endpoints ?? []).filter(({ spec }) => spec.node === node);
  const attaching = createAttaching({
    ...{ cluster, claims, ports, trigger },
    hasSuccessor: ({ uid, containerId, interface: device }) =>
      attachment.pods
        .list()
        .some((pod) => pod.uid === uid && pod.interface === device && pod.containerId !== containerId),
    takenIn: createTaken(cluster, () => known.objects(), node),
    endpointsOf: (podUid) =>
      own().filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === podUid)),
    mtuOf(name) {
      const { number, mtu } = known.objects()?.networks.find(({ metadata }) => metadata.name === name)?.status ?? {};
      return number === undefined ? undefined : mtu;
    },
    namesakeOf: (key) =>
      own()
        .map(endpointKey)
        .find((other) => other !== key && portName(other) === portName(key)),
    isInForce(endpoint) {
      const plan = known.plan();
      return plan !== undefined && isInPlan(plan, endpoint);
    },
    until: (condition, signal) => known.turns.until(condition, signal),
  });
  return {
    handlers: attaching.handlers,
    /** Endpoints whose pods are gone: of agents before this one, or while the API server was away. */
    leftovers: (devices: ReadonlySet<string>): readonly NetworkEndpoint[] =>
      own().filter((one) => !attaching.isUnderWay(endpointKey(one)) && !devices.has(portName(endpointKey(one)))),
    release: (endpoint: NetworkEndpoint, signal: AbortSignal) => attaching.releaseLeftover(endpoint, signal),
    close: () => ports[Symbol.dispose](),
  };
};

/** Whether anything of the section is in the kernel, and the end of that. */
const createPresence = async ({ boundary }: SectionContext, kernel: L2Kernel) => {
  let isThere = await kernel.isInKernel();
  const begin = (): void => {
    isThere = true;
    boundary.set({ devices: [DEVICES.l2Entry, DEVICES.l2Exit] });
  };
  // Connectivity's first table has the devices, if the last one had them.
  if (isThere) begin();
  return {
    begin,
    async end(): Promise<readonly Problem[]> {
      if (!isThere) return [];
      try {
        await kernel.tearDown();
        boundary.set({});
        isThere = false;
        return [];
      } catch (error) {
        const message = `nothing of Networks is to be done any more, and what was done cannot be taken away (${(error as Error).message}): the agent tries again`;
        return [{ reason: 'L2Failed', message }];
      }
    },
  };
};

/** What a pass has come to. */
interface Outcome {
  readonly plan: L2Plan;
  readonly problems: readonly Problem[];
  /** Devices of ports that are there. */
  readonly ports: ReadonlySet<string>;
  readonly isInForce: boolean;
}

const passOf = ({ plan, problems, ports }: Outcome, attaching: ReturnType<typeof openAttaching>): SectionPass => {
  const condition = l2Condition(plan, problems);
  const leftovers = attaching?.leftovers(ports) ?? [];
  const write = async (signal: AbortSignal): Promise<void> => {
    for (const endpoint of leftovers) await attaching?.release(endpoint, signal);
  };
  const report = { problems, ...(condition && { conditions: [condition] }), ...(leftovers.length > 0 && { write }) };
  const { networks, fdb, neighbors } = plan;
  const planned = {
    ...{ networks: networks.length, ports: plan.ports.length },
    ...{ fdb_entries: fdb.length, neighbors: neighbors.length },
  };
  return { nextPassMs: EVERY_MS, report, planned };
};

interface Planned {
  readonly inputs: L2Snapshot;
  readonly plan: L2Plan;
}

/** The same plan, and the same object, while nothing that it depends on has changed. */
const createPlanner = (node: string) => {
  let last: { readonly of: readonly unknown[]; readonly planned: Planned } | undefined;
  return (objects: L2Objects, overlay: OverlayPeers, ports: ReadonlySet<string>): Planned => {
    const [locators, { routed }] = [overlay.locators(), overlay];
    const of = [objects, locators, routed, [...ports].sort().join()];
    if (last?.of.every((value, at) => value === of[at])) return last.planned;
    const inputs = l2SnapshotOf(objects, { node, locators, routed, ports });
    last = { of, planned: { inputs, plan: planL2(inputs) } };
    return last.planned;
  };
};

/** Observes, plans and applies; undefined: not enough is known, and what is in the kernel goes on as it is. */
const createTurn = async (
  context: SectionContext,
  kernel: L2Kernel,
  source: L2Source,
): Promise<() => Promise<Outcome | undefined>> => {
  const { nodeName: node, net, peers, traffic, metrics } = context;
  const presence = await createPresence(context, kernel);
  const planned = createPlanner(node);
  const frames = createFrameMetrics(metrics);
  return async () => {
    const [snapshot, overlay, seen] = [source.snapshot(), peers.current(), traffic.current()];
    if (!snapshot || !overlay || !seen) return undefined;
    const links = await listPorts(net);
    const ports = new Set(links.map(({ name }) => name));
    const { inputs, plan } = planned(snapshot, overlay, ports);
    const nothing = { plan, ports, isInForce: false };
    if (plan.networks.length === 0 && links.length === 0) return { ...nothing, problems: await presence.end() };
    const { locator } = overlay;
    if (locator === undefined) return { ...nothing, problems: [withoutLocator(node)] };
    presence.begin();
    const applied = await kernel.apply(plan, {
      locator: parsePrefix(locator),
      locators: [...overlay.locators().values()],
      native: overlay.native.filter((block) => block.includes(':')),
      overlayDevices: seen.devices.filter((name) => !NOT_OVERLAY.has(name)),
    });
    const endpoints = new Map([...inputs.ports].map(([endpoint, device]) => [device, endpoint]));
    const indexes = new Map(links.map(({ name, index }) => [name, index]));
    frames.observe(kernel.counters(), ownersOf(plan, indexes, endpoints));
    const problems = [...applied.problems, ...plan.problems.map(problemOf)];
    return { plan, ports, problems, isInForce: applied.isInForce };
  };
};

const openL2 = async (context: SectionContext, kernel: L2Kernel): Promise<Section> => {
  const { peers, traffic, logger, trigger } = context;
  const source = createL2Source(context);
  const logProblems = createProblemLog(logger);
  const turns = createTurns();
  const turn = await createTurn(context, kernel, source);
  /** In force, wholly. */
  let enforced: L2Plan | undefined;
  const attaching = openAttaching(context, {
    ...{ objects: () => source.snapshot(), plan: () => enforced, turns },
  });
  peers.onChange(trigger);
  traffic.onChange(trigger);
  context.onKernelChange(concernsL2);
  return {
    async pass() {
      try {
        enforced = undefined;
        const outcome = await turn();
        if (!outcome) return { nextPassMs: EVERY_MS, report: { problems: [] } };
        if (outcome.isInForce) enforced = outcome.plan;
        logProblems(outcome.problems);
        return passOf(outcome, attaching);
      } finally {
        turns.done();
      }
    },
    ...(attaching && { hook: attaching.handlers }),
    async stop() {
      attaching?.close();
      kernel.close();
    },
  };
};

export const l2Section = ({ bpffsDir, l2BpfObject, dataplane }: L2Config): SectionType => ({
  name: L2_SECTION,
  routeProtocol: L2_ROUTE_PROTOCOL,
  baseChains: Object.values(L2_CHAINS),
  hook: {
    ...{ order: 30, timeoutMs: ADD_WITHIN_MS, unavailable: 'refuse' },
    port: ({ joins }) => (joins ? 'own' : 'bridge'),
  },
  async open(context) {
    const { net, nft, metrics, kernelWrites } = context;
    const kernel = createL2Kernel({
      ...{ net, nft, table: context.table('inet'), metrics, countWrites: kernelWrites.map },
      ...{ objectPath: l2BpfObject, pinFolder: l2PinFolder(bpffsDir) },
      dataPathPins: dataplane === 'ebpf' ? bpffsDir : undefined,
    });
    try {
      return await openL2(context, kernel);
    } catch (error) {
      kernel.close();
      throw error;
    }
  },
});
