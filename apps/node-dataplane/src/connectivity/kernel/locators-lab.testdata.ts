import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { addressToBytes, macBytes, parseAddress } from '@unbounded/ip';
import { createNetns, type Netns } from '@unbounded/netlink';
import { findMember, parseWorld, planNode, type TopologyObjects } from '@unbounded/topology';
import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';
import type { DataPathKind } from '../../data-path/kernel-plan.ts';
import { renderPlan } from '../../data-path/render.ts';
import { isApplied, startNode } from './node-addresses-lab.testdata.ts';

/**
 * Two workers of two sites and the gateway between them, whose pods and underlay have IPv4 alone, joined by VXLAN. Each has a locator; a
 * veth pair stands for the device by which the section for stretched L2 hands frames to the stack, an ifb for the one that takes them.
 */

const HOSTS = { w1: 31, g1: 21, w2: 32 } as const;
type NodeName = keyof typeof HOSTS;
type Place = NodeName | 'lan';
const NODES = Object.keys(HOSTS) as NodeName[];
const DEVICES = { in: 'l2in0', wire: 'l2in1', out: 'l2out0' } as const;

const siteOf = (node: NodeName): number => Number(node.at(-1));
const addressOf = (node: NodeName): string => `10.${siteOf(node)}.0.${HOSTS[node]}`;
const groupOf = (node: NodeName): string => `fd4c:0:0:${siteOf(node)}0${HOSTS[node]}`;
export const LOCATORS = { w1: groupOf('w1'), g1: groupOf('g1'), w2: groupOf('w2') } as const;

const API = { apiVersion: 'net.unbounded-cloud.io/v1alpha1' } as const;
const object = (kind: string, name: string, rest: object): object => ({ ...API, kind, metadata: { name }, ...rest });

/** Nobody is given up while packets are sent one by one: a process of a busy machine may be late by seconds. */
const HEALTH = { transmitInterval: '1s', detectMultiplier: 10 } as const;

const objectsFor = (keys: Readonly<Record<NodeName, string>>): TopologyObjects => {
  const member = (name: NodeName) => ({
    name,
    wireGuardPublicKey: publicKeyOf(keys[name]),
    internalIPs: [addressOf(name)],
    podCIDRs: [`100.${64 + siteOf(name)}.${HOSTS[name]}.0/24`],
    l2Locator: `${LOCATORS[name]}::/64`,
    tunnelProtocols: ['VXLAN'],
  });
  const site = (index: number): object =>
    object('Site', `s${index}`, {
      spec: {
        nodeCidrs: [`10.${index}.0.0/24`],
        podCidrAssignments: [{ cidrBlocks: [`100.${64 + index}.0.0/16`] }],
        tunnelProtocol: 'VXLAN',
        healthCheckSettings: HEALTH,
      },
      status: { l2LocatorBlock: `fd4c:0:0:${index}000::/52` },
    });
  const slice = (index: number, name: NodeName): object =>
    object('SiteNodeSlice', `s${index}-0`, { siteName: `s${index}`, sliceIndex: 0, nodes: [member(name)] });
  return {
    sites: [site(1), site(2)],
    slices: [slice(1, 'w1'), slice(2, 'w2')],
    gatewayPools: [
      object('GatewayPool', 'p1', {
        spec: {
          type: 'Internal',
          nodeSelector: { pool: 'p1' },
          tunnelProtocol: 'VXLAN',
          healthCheckSettings: HEALTH,
        },
        status: { nodes: [{ ...member('g1'), siteName: 's1', gatewayWireguardPort: 51_821, features: ['locators'] }] },
      }),
    ],
    sitePeerings: [object('SitePeering', 'lan', { spec: { sites: ['s1', 's2'], meshNodes: false } })],
    assignments: [object('SiteGatewayPoolAssignment', 'a', { spec: { sites: ['s1', 's2'], gatewayPools: ['p1'] } })],
    meshes: [],
    poolPeerings: [],
  } as unknown as TopologyObjects;
};

/** As they were before controllers gave any. */
const withoutLocators = (objects: TopologyObjects): TopologyObjects =>
  JSON.parse(
    JSON.stringify(objects, (key, value: unknown) => (key.startsWith('l2') ? undefined : value)),
  ) as TopologyObjects;

const SEND = `use Socket;
my ($index, $frame) = @ARGV;
socket(my $socket, 17, 3, 0) or die $!;
send($socket, pack("H*", $frame), 0, pack("S n i S C C a8", 17, 3, $index, 0, 0, 0, "")) or die $!;`;

const ETHERNET_IN_IPV6 = 143;
const bytesOf = (address: string): Uint8Array => addressToBytes(parseAddress(address));

/** A frame whose IPv6 packet has nothing but 40 bytes inside. */
const frameOf = (mac: string, source: string, destination: string): string => {
  const macs = [...macBytes(mac), ...macBytes('02:00:00:00:00:01')];
  const header = [0x60, 0, 0, 0, 0, 40, ETHERNET_IN_IPV6, 64, ...bytesOf(source), ...bytesOf(destination)];
  return Buffer.from([...macs, 0x86, 0xdd, ...header, ...Array.from({ length: 40 }, () => 0)]).toString('hex');
};

export interface LocatorLab {
  /** Problems of all nodes. */
  apply(locators: 'with locators' | 'without'): Promise<readonly string[]>;
  /** A packet that the section of a node hands to its stack, or one that a stranger on the LAN sends to a node. */
  send(from: NodeName | { readonly strangerTo: NodeName }, source: string, destination: string): void;
  /** Waits until as many packets have come out at a node's own device, or some seconds. */
  arrived(node: NodeName, atLeast: number): Promise<number>;
  within(place: Place, ...argv: string[]): string;
  close(): void;
}

const LATE_MS = 10_000;
const POLL_MS = 50;

export const startLocatorLab = (dataplane: DataPathKind): LocatorLab => {
  const ns = Object.fromEntries([...NODES, 'lan'].map((place) => [place, createNetns()])) as Record<Place, Netns>;
  const within = (place: Place, ...argv: string[]): string =>
    execFileSync('nsenter', [`--net=${ns[place].path}`, ...argv], { encoding: 'utf8' });
  const run = (place: Place, line: string): string => within(place, ...line.split(' '));
  const keys = Object.fromEntries(NODES.map((name) => [name, generatePrivateKey()])) as Record<NodeName, string>;
  run('lan', 'ip link add switch up type bridge mcast_snooping 0');
  for (const node of NODES) {
    run(node, 'ip link set lo up');
    run(node, `ip link add eth0 type veth peer name ${node} netns ${ns.lan.path}`);
    run('lan', `ip link set ${node} master switch up`);
    run(node, `ip addr add ${addressOf(node)}/8 dev eth0`);
    run(node, 'ip link set eth0 up');
    run(node, `ip link add ${DEVICES.in} type veth peer name ${DEVICES.wire}`);
    run(node, `ip link add ${DEVICES.out} type ifb`);
    for (const device of Object.values(DEVICES)) run(node, `ip link set ${device} up`);
    run(node, `ip -6 route add ${LOCATORS[node]}::/64 dev ${DEVICES.out}`);
    const chain = `chain c {\n type filter hook egress device ${DEVICES.out} priority 0;\n meta protocol ip6 ip6 daddr ${LOCATORS[node]}::/64 counter\n }`;
    execFileSync('nsenter', [`--net=${ns[node].path}`, 'nft', '-f', '-'], {
      input: `table netdev seen {\n${chain}\n}\n`,
    });
  }
  const additions = [{ devices: [DEVICES.in, DEVICES.out] }];
  const nodes = new Map(
    NODES.map((name) => [name, startNode(name, ns[name], { dataplane, privateKey: keys[name], additions })]),
  );
  const macOf = (node: NodeName, device: string): string =>
    (JSON.parse(run(node, `ip -j link show ${device}`)) as { address: string }[])[0]!.address;
  const indexOf = (place: Place, device: string): number =>
    (JSON.parse(run(place, `ip -j link show ${device}`)) as { ifindex: number }[])[0]!.ifindex;
  const countAt = (node: NodeName): number =>
    Number(/counter packets (\d+)/.exec(run(node, 'nft list table netdev seen'))![1]);
  return {
    within,
    async apply(locators) {
      const objects = objectsFor(keys);
      const world = parseWorld(locators === 'without' ? withoutLocators(objects) : objects);
      const applied = await Promise.all(
        NODES.map((name) => {
          const plan = planNode(world, { member: findMember(world, name)!, underlayMtuBytes: 1500 });
          nodes.get(name)!.say({ plan: renderPlan(dataplane, plan) });
          return nodes.get(name)!.take(isApplied);
        }),
      );
      return applied.flatMap(({ problems }) => problems);
    },
    send(from, source, destination) {
      const [place, device, frame] =
        typeof from === 'string'
          ? ([from, DEVICES.wire, frameOf(macOf(from, DEVICES.in), source, destination)] as const)
          : (['lan', 'switch', frameOf(macOf(from.strangerTo, 'eth0'), source, destination)] as const);
      within(place, 'perl', '-e', SEND, String(indexOf(place, device)), frame);
    },
    async arrived(node, atLeast) {
      const end = performance.now() + LATE_MS;
      while (countAt(node) < atLeast && performance.now() < end) await sleep(POLL_MS);
      return countAt(node);
    },
    close() {
      for (const one of nodes.values()) one.end();
      for (const one of Object.values(ns)) one.close();
    },
  };
};
