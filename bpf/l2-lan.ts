import { execFileSync, spawnSync } from 'node:child_process';
import { type Attachment, attachProgram } from '@unbounded/libbpf-ts';
import { createNetns, createRouteSocket, type Netns, type RouteSocket } from '@unbounded/netlink';
import { type L2Switch, loadSwitch, MTU, NETWORK, SEGMENT } from './l2-switch.ts';

/** A LAN over two nodes, as an agent sets it up: a wire between them, pods with ports, programs, maps. */

export interface Pod extends Disposable {
  readonly ns: Netns;
  readonly node: Node;
  /** ifindex of the host side. */
  readonly port: number;
  /** ifindex of eth0. */
  readonly inside: number;
  readonly mac: string;
  readonly ipv4: string;
  readonly ipv6: string;
}

export interface Node extends Disposable {
  readonly ns: Netns;
  readonly net: RouteSocket;
  readonly l2: L2Switch;
  readonly locator: string;
  readonly attachments: Attachment[];
}

export const run = (ns: Netns, line: string): string =>
  execFileSync('nsenter', [`--net=${ns.path}`, ...line.split(' ')], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
export const runs = (ns: Netns, line: string): { readonly passed: boolean; readonly output: string } => {
  const { status, stdout } = spawnSync('nsenter', [`--net=${ns.path}`, ...line.split(' ')], { encoding: 'utf8' });
  return { passed: status === 0, output: stdout };
};

/** The kernel cannot segment what is inside: the ports and the wire have no superpackets. */
const withoutSuperpackets = (ns: Netns, device: string): void =>
  void run(ns, `ethtool -K ${device} tso off gso off gro off`);

/** Frames of ports come into a bridge without ports, and those for them out of an ifb. */
const DEVICES = [
  { name: 'l2in', kind: { kind: 'bridge' } },
  { name: 'l2out', kind: { kind: 'ifb' } },
] as const;

export const addNode = async (
  ns: Netns,
  wire: { readonly name: string; readonly own: string; readonly other: string },
  numbers: readonly [own: number, other: number],
): Promise<Node> => {
  const net = createRouteSocket({ netnsFd: ns.fd });
  const [locator, far] = numbers.map((number) => `fd00:cafe:0:${number}::`) as [string, string];
  run(ns, 'sysctl -qw net.ipv6.conf.all.forwarding=1');
  run(ns, `ip link set ${wire.name} mtu 1600 up`);
  withoutSuperpackets(ns, wire.name);
  run(ns, `ip addr add ${wire.own}/64 dev ${wire.name} nodad`);
  const links: number[] = [];
  for (const device of DEVICES) {
    const { index } = await net.links.create({ ...device, mtu: 9000, arp: false, up: true });
    links.push(index);
  }
  run(ns, `ip -6 route add ${locator}/64 dev l2out`);
  run(ns, `ip -6 route add ${far}/64 via ${wire.other}`);
  const l2 = loadSwitch();
  const { mac = '' } = (await net.links.get('l2in')) ?? {};
  l2.config.set(0, { locator, ifindex: links[0]!, mac });
  l2.networks.set(NETWORK, { mtu: MTU });
  const attachments = [
    attachProgram(l2.object.program('unbounded_l2_receive'), {
      ifindex: links[1]!,
      direction: 'egress',
      netnsFd: ns.fd,
    }),
  ];
  const close = (): void => {
    l2[Symbol.dispose]();
    net.close();
    ns.close();
  };
  return { ns, net, l2, locator, attachments, [Symbol.dispose]: close };
};

/** A pod whose last octet of everything is that number. */
export const addPod = async (node: Node, number: number): Promise<Pod> => {
  const ns = createNetns();
  const [mac, ipv4, ipv6] = [`02:00:00:00:00:0${number}`, `10.9.0.${number}`, `fd99::${number}`];
  const name = `port${number}`;
  const port = await node.net.links.create({ name, kind: { kind: 'veth', peer: { name: 'eth0', netnsFd: ns.fd } } });
  // Larger than the network's: what exceeds that is to come to the program, which answers it, and not to be dropped by the veth.
  run(node.ns, `ip link set ${name} addrgenmode none mtu 1500 up`);
  run(ns, `ip link set eth0 address ${mac} addrgenmode none mtu ${MTU} up`);
  withoutSuperpackets(node.ns, name);
  withoutSuperpackets(ns, 'eth0');
  run(ns, 'ethtool -K eth0 tx off');
  run(ns, `ip addr add ${ipv4}/24 dev eth0`);
  run(ns, `ip addr add ${ipv6}/64 dev eth0 nodad`);
  await using net = createRouteSocket({ netnsFd: ns.fd });
  const inside = (await net.links.get('eth0'))!.index;
  const ifindex = port.index;
  node.l2.ports.set(ifindex, { network: NETWORK, segment: SEGMENT, rate: 1000, burst: 100, mac });
  node.l2.buckets.set(ifindex, 'full');
  for (const address of [ipv4, ipv6]) node.l2.addresses.set({ ifindex, address }, true);
  node.attachments.push(
    attachProgram(node.l2.object.program('unbounded_l2_port'), { ifindex, direction: 'ingress', netnsFd: node.ns.fd }),
  );
  return { ns, node, port: ifindex, inside, mac, ipv4, ipv6, [Symbol.dispose]: () => ns.close() };
};

/** Every node knows every pod. */
export const announce = (nodes: readonly Node[], pods: readonly Pod[]): void => {
  for (const { l2, ...node } of nodes) {
    for (const { node: home, port, mac, ipv4, ipv6 } of pods) {
      const place = home.l2 === l2 ? { ifindex: port } : { locator: home.locator };
      l2.fdb.set({ network: NETWORK, mac }, { ...place, segment: SEGMENT, sequence: 0n });
      for (const address of [ipv4, ipv6]) l2.neighbors.set({ network: NETWORK, address }, { mac });
    }
    l2.flood.set(NETWORK, {
      ports: pods.filter(({ node: home }) => home.l2 === l2).map(({ port }) => port),
      locators: nodes.filter(({ locator }) => locator !== node.locator).map(({ locator }) => locator),
    });
  }
};
