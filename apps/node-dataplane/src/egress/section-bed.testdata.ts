import { setTimeout as sleep } from 'node:timers/promises';
import { DEVICES } from '@unbounded/config/ownership';
import { type EgressNodeSlice, type EgressNodeSliceSpec, GROUP_VERSION } from '@unbounded/crds';
import type { Cluster } from '@unbounded/kube';
import { createConntrack, openPacketSocket, type PacketSocketOptions } from '@unbounded/netlink';
import { createMetrics, type Metrics, silentLogger as logger } from '@unbounded/telemetry';
import { serveTcp, type TcpServer } from '@unbounded/testing/tcp-flows';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import type { PodAttachment } from '../attachment/pods.ts';
import type { BoundaryAdditions } from '../kernel/boundary-additions.ts';
import { createSharedPeers } from '../kernel/overlay-peers.ts';
import { createSharedTraffic } from '../kernel/overlay-traffic.ts';
import type { Section, SectionContext, SectionPass, VersionedPlan } from '../section.port.ts';
import {
  ADDRESSES,
  addressOf,
  type EgressNetwork,
  FAMILIES,
  openEgressNetwork,
  PORT,
} from './egress-network.testdata.ts';
import type { PortWatchTimings } from './metrics/port-watch.ts';
import { egressSection } from './section.ts';

/** The section on both nodes of the network, without an API server: the slices are what a test says. */

export type NodeName = 'worker' | 'gateway';
const NODES = ['worker', 'gateway'] as const;

/** What a node knows; a test changes it and asks for a pass. */
interface World {
  slices: readonly EgressNodeSlice[] | undefined;
  pods: PodAttachment[];
  kept: VersionedPlan | undefined;
  additions: BoundaryAdditions | undefined;
  holdMs?: number;
  portWatch?: PortWatchTimings;
  /** Not set: objects come from files, and whatever is in them holds. */
  cluster?: Cluster | undefined;
  metrics?: Metrics;
  /** It has said neither who is in the overlay nor what its devices are. */
  isConnectivitySilent?: boolean;
  /** The section wants another pass. */
  asked: boolean;
}

export interface SectionBed {
  readonly network: EgressNetwork;
  /** Empty before each test. */
  readonly worlds: Record<NodeName, World>;
  /** That are open; a test that stops one takes it out. */
  readonly sections: Section[];
  readonly open: (node: NodeName) => Promise<Section>;
  /** A pass, and others as it asks for them, until it is known of all addresses whether they are free. */
  readonly settle: (node: NodeName, section: Section) => Promise<SectionPass>;
  /** Whom the partner sees, by family. */
  readonly asked: (from: 'pod' | 'other', timeoutSeconds?: number) => Promise<string[]>;
}

export const NONE = ['none', 'none'];

/** Where it is never known of all. */
const [LOOKS, LOOK_EVERY_MS] = [100, 20];

const CLUSTER = ['100.65.0.0/16', '100.66.0.0/16', 'fd64:65::/32', 'fd64:66::/32'];

const contextOf = (node: NodeName, world: World, network: EgressNetwork): SectionContext => {
  const { net, nft, table } = network.nodes[node];
  const [peers, traffic] = [createSharedPeers(), createSharedTraffic()];
  if (!world.isConnectivitySilent)
    traffic.set({
      ...{ devices: [DEVICES.VXLAN], peers: [], peerPorts: [], peerProtocols: [], openPorts: [], entries: [] },
      hasIpv6: true,
    });
  if (!world.isConnectivitySilent)
    peers.set({
      overlayAddresses: ADDRESSES[`${node}Overlay`],
      mtuBytes: 1450,
      podCidrs: node === 'worker' ? ['100.65.30.0/24', 'fd64:65:30::/64'] : ['100.65.20.0/24', 'fd64:65:20::/64'],
      keepsSource: CLUSTER,
      apiServer: [],
      locator: undefined,
      native: [],
      routed: [],
      locators: () => new Map(),
      nodes: () =>
        NODES.map((name) => ({
          node: name,
          overlayAddresses: ADDRESSES[`${name}Overlay`],
          addresses: ADDRESSES[name],
        })),
    });
  return {
    ...{ nodeName: node, net, nft, table, traffic, peers, logger, cluster: world.cluster },
    metrics: (world.metrics = createMetrics()),
    boundary: {
      set: (added: BoundaryAdditions) => (world.additions = added),
      all: () => [],
      onChange: () => undefined,
    },
    kept: { read: () => world.kept, write: (kept: VersionedPlan) => (world.kept = structuredClone(kept)) },
    attachment: { bridgePods: { list: () => world.pods } },
    openInputs: () => ({
      snapshot: () => world.slices && { objects: { slices: world.slices }, node: { uid: `uid-${node}` }, version: 1 },
      onChange: () => undefined,
      stop: async () => undefined,
    }),
    trigger: () => (world.asked = true),
    onKernelChange: () => undefined,
  } as unknown as SectionContext;
};

/** For all tests of a file: nothing is left on the nodes behind each. */
export const openSectionBed = (): SectionBed => {
  let network: EgressNetwork;
  let server: TcpServer;
  const worlds = {} as Record<NodeName, World>;
  const sections: Section[] = [];

  const open = async (node: NodeName): Promise<Section> => {
    const world = worlds[node];
    const netnsFd = network.ns[node].fd;
    const sockets = {
      conntrack: createConntrack({ netnsFd }),
      openSocket: (options: PacketSocketOptions) => openPacketSocket({ ...options, netnsFd }),
      probeTimings: { firstWithinMs: 5, betweenMs: 10, listenMs: 50 },
      ...(world.holdMs !== undefined && { holdMs: world.holdMs }),
      ...(world.portWatch && { portWatch: world.portWatch }),
    };
    const section = await egressSection(() => sockets).open(contextOf(node, world, network));
    sections.push(section);
    return section;
  };
  const stopAll = async (): Promise<void> => {
    for (const section of sections.splice(0)) await section.stop();
  };

  beforeAll(async () => {
    network = await openEgressNetwork();
    server = await serveTcp(['nsenter', `--net=${network.ns.partner.path}`], PORT);
  }, 30_000);
  afterAll(async () => {
    server.end();
    await network.close();
  });
  beforeEach(() => {
    const empty = (): World => ({ slices: [], pods: [], kept: undefined, additions: undefined, asked: false });
    Object.assign(worlds, { worker: empty(), gateway: empty() });
    network.run('partner', 'ip', 'neigh', 'flush', 'dev', 'lan');
    for (const node of NODES) network.sources(node);
  });
  afterEach(async () => {
    await stopAll();
    for (const node of NODES) {
      worlds[node].slices = [];
      worlds[node].pods = [];
      await (await open(node)).pass();
    }
    await stopAll();
  });

  return {
    get network() {
      return network;
    },
    worlds,
    sections,
    open,
    async settle(node, section) {
      const world = worlds[node];
      const owned = (world.slices ?? []).flatMap(({ spec }) => (spec.owned ?? []).filter(({ release }) => !release));
      // Of one that the node may not take there is a problem instead.
      const isSettled = ({ planned, report }: SectionPass): boolean =>
        (planned?.['addresses'] ?? 0) + report.problems.length >= owned.length;
      let pass = await section.pass();
      for (let looks = 0; looks < LOOKS && !isSettled(pass); looks++) {
        await sleep(LOOK_EVERY_MS);
        if (!world.asked) continue;
        world.asked = false;
        pass = await section.pass();
      }
      return pass;
    },
    asked: (from, timeoutSeconds = 2) =>
      Promise.all(FAMILIES.map((family) => network.ask(from, addressOf('partner', family), timeoutSeconds))),
  };
};

export const pod = (name: 'pod' | 'other'): PodAttachment => ({
  ...{ namespace: 'shop', name, uid: `uid-${name}`, containerId: name, netns: '' },
  ...{ interface: 'eth0', hostVeth: undefined },
  addresses: [`${ADDRESSES[name][0]}/24`, `${ADDRESSES[name][1]}/64`],
});

export const slice = (node: NodeName, spec: Partial<EgressNodeSliceSpec>): EgressNodeSlice => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressNodeSlice',
  metadata: { name: `${node}-0`, uid: `slice-${node}`, generation: 1 },
  spec: { nodeName: node, nodeUID: `uid-${node}`, index: 0, ...spec },
});

export const routes = (
  owner: NodeName,
  host: 'first' | 'second' = 'first',
): NonNullable<EgressNodeSliceSpec['routes']> => [
  {
    rule: 'StaticEgressIP/shop/web/0',
    destinations: ['0.0.0.0/0', '::/0'],
    egress: ADDRESSES[host].map((address) => ({ address, node: owner })),
    whenUnavailable: 'Drop',
  },
];

export const owned = (host: 'first' | 'second' = 'first', release = false): NonNullable<EgressNodeSliceSpec['owned']> =>
  ADDRESSES[host].map((address) => ({ address, epoch: 1, announce: 'L2', ...(release && { release }) }));

/** The pod leaves with the first address, by this owner. */
export const steered = (owner: NodeName): EgressNodeSlice =>
  slice('worker', {
    routes: routes(owner),
    pods: [{ uid: 'uid-pod', namespace: 'shop', name: 'pod', addresses: [], routes: [0] }],
  });

/** The gateway owns the first address, for the pod. */
export const serving = (more: Partial<EgressNodeSliceSpec> = {}): EgressNodeSlice =>
  slice('gateway', {
    routes: routes('gateway'),
    owned: owned(),
    sources: [{ uid: 'uid-pod', node: 'worker', addresses: [...ADDRESSES.pod], routes: [0] }],
    ...more,
  });
