import { execFileSync, spawnSync } from 'node:child_process';
import { endpointKey } from '@unbounded/l2';
import { endpoint, fdbEntry, neighbor, network } from '@unbounded/l2/testdata';
import { createNetns, createRouteSocket, type Netns } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import { createMetrics, silentLogger as logger } from '@unbounded/telemetry';
import type { BoundaryAdditions } from '../kernel/boundary-additions.ts';
import { L2_CHAINS } from '../kernel/base-chains.ts';
import { createDropMetrics } from '../kernel/drop-metrics.ts';
import { createKernelWrites } from '../kernel/kernel-writes.ts';
import { createSharedPeers } from '../kernel/overlay-peers.ts';
import { createSharedTraffic } from '../kernel/overlay-traffic.ts';
import { createSectionTable } from '../kernel/section-table.ts';
import type { Section, SectionContext } from '../section.port.ts';
import type { L2Objects } from './l2-source.ts';
import { L2_PORT_ALIAS, portName } from './names.ts';
import { l2Section } from './section.ts';

/** A node with the section alone, in the process's own namespaces; a veth stands in the place of the overlay. */

export const run = (...argv: string[]): string =>
  execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
export const runs = (...argv: string[]): boolean => spawnSync(argv[0]!, argv.slice(1)).status === 0;

export const WIRE = 'eth0';
export const locatorOf = (number: number): string => `fd53:0:0:${number}::/64`;
const WIRE_BLOCK = 'fd00:99::/64';
const wireAddress = (number: number): string => `fd00:99::${number}`;

/** Endpoints e1 and e2 on node n1, e3 on n2: e2 is in the other segment. */
const lan = network('lan', { segments: [{ name: 'office' }] });
export const endpoints = [endpoint(1, 'n1'), endpoint(2, 'n1', { segment: 'office' }), endpoint(3, 'n2')] as const;
const objects: L2Objects = {
  networks: [lan],
  endpoints,
  fdbEntries: endpoints.map((one) => fdbEntry(one)),
  neighbors: endpoints.flatMap((one) => one.spec.addresses.map((ip) => neighbor(one, ip))),
};
export const nothing: L2Objects = { networks: [], endpoints: [], fdbEntries: [], neighbors: [] };

export interface Pod {
  readonly ns: Netns;
  run(...argv: string[]): string;
  runs(...argv: string[]): boolean;
}

/** As attachment makes it: the node's end has the name and the alias of the endpoint's port. */
export const plugPod = (one: (typeof endpoints)[number]): Pod => {
  const ns = createNetns();
  const port = portName(endpointKey(one));
  const inside = (...argv: string[]): string => run('nsenter', `--net=${ns.path}`, ...argv);
  run('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', 'net1', 'netns', ns.path);
  run('ip', 'link', 'set', port, 'alias', L2_PORT_ALIAS, 'addrgenmode', 'none', 'mtu', '1500', 'up');
  inside('ip', 'link', 'set', 'net1', 'address', one.spec.mac, 'addrgenmode', 'none', 'mtu', '1366', 'up');
  inside('ethtool', '-K', 'net1', 'tso', 'off', 'gso', 'off', 'tx', 'off');
  for (const address of one.spec.addresses)
    inside('ip', 'addr', 'add', `${address}/${address.includes(':') ? 64 : 24}`, 'dev', 'net1', 'nodad');
  return { ns, run: inside, runs: (...argv) => runs('nsenter', `--net=${ns.path}`, ...argv) };
};

/** The node's end of a port alone, with nobody behind it. */
export const addPort = (device: string): void => {
  run('ip', 'link', 'add', device, 'type', 'veth', 'peer', 'name', device.replace('l2p', 'l2n'));
  run('ip', 'link', 'set', device, 'alias', L2_PORT_ALIAS);
};

/** The wire is there: its own end has the address of the node, and leads to the locator of the other. */
export const settleWire = (own: number, other: number): void => {
  run('sysctl', '-qw', 'net.ipv6.conf.all.forwarding=1');
  run('ip', 'link', 'set', 'lo', 'up');
  run('ip', 'link', 'set', WIRE, 'mtu', '1420', 'up');
  run('ip', 'addr', 'add', `${wireAddress(own)}/64`, 'dev', WIRE, 'nodad');
  run('ip', 'route', 'add', locatorOf(other), 'via', wireAddress(other));
};

export interface L2Node {
  readonly open: () => Promise<Section>;
  objects: L2Objects;
  /** Of all nodes, by name. */
  locators: ReadonlyMap<string, string>;
  readonly additions: () => BoundaryAdditions | undefined;
  metrics(): Promise<string>;
}

const objectPath = new URL('../../../../bpf/build/unbounded_l2.bpf.o', import.meta.url).pathname;

/** @param isNative nodes send to each other without a tunnel: the wire is no device of the overlay */
export const createL2Node = (nodeName: string, isNative = false): L2Node => {
  const [net, nft] = [createRouteSocket(), createNftables()];
  const metrics = createMetrics();
  let additions: BoundaryAdditions | undefined;
  const [peers, traffic] = [createSharedPeers(), createSharedTraffic()];
  const node: L2Node = {
    objects,
    locators: new Map([1, 2].map((number) => [`n${number}`, locatorOf(number)])),
    additions: () => additions,
    metrics: () => metrics.render(),
    open: () =>
      l2Section({ bpffsDir: '/sys/fs/bpf/unbounded/v1', dataplane: 'netlink', l2BpfObject: objectPath }).open(context),
  };
  traffic.set({
    ...{ devices: isNative ? [] : [WIRE], peers: [], peerPorts: [], peerProtocols: [], openPorts: [], entries: [] },
    hasIpv6: true,
  });
  peers.set({
    ...{ overlayAddresses: [], mtuBytes: 1420, podCidrs: [], keepsSource: [], apiServer: [] },
    get locator() {
      return node.locators.get(nodeName);
    },
    native: isNative ? [...node.locators.values(), WIRE_BLOCK] : [],
    routed: ['fd53::/48'],
    locators: () => node.locators,
    nodes: () => [],
  });
  const baseChains = Object.values(L2_CHAINS);
  const newDrops = createDropMetrics(metrics);
  const context = {
    ...{ nodeName, net, nft, peers, traffic, logger, metrics, kernelWrites: createKernelWrites(metrics, 'l2') },
    table: (family: 'inet') =>
      createSectionTable({ nft, section: 'l2', family, baseChains, drops: newDrops(), logger }),
    boundary: { set: (added: BoundaryAdditions) => (additions = added), all: () => [], onChange: () => undefined },
    openInputs: () => ({
      snapshot: () => ({ objects: node.objects, node: undefined, version: node.objects }), // another with each change
      onChange: () => undefined,
      stop: async () => undefined,
    }),
    trigger: () => undefined,
    onKernelChange: () => undefined,
  } as unknown as SectionContext;
  return node;
};
