import { randomBytes } from 'node:crypto';
import { strangerAttempts } from '@unbounded/relay-testing/strangers';
import {
  type Bytes,
  datagram,
  ethernet,
  geneve,
  gratuitousArp,
  GRE,
  IPIP,
  ipPacket,
  IPV6_IN_IP,
  vxlan,
} from '@unbounded/testing/packets';
import type { LabNode } from '../../layout/layout.ts';
import type { Pod } from '../../checks/test-pod.ts';
import type { Attempt } from './attempts.ts';
import { expectDropped } from './evidence.ts';
import { COUNT } from './inject.ts';
import type { OpenPort } from './open-ports.ts';
import type { RelayDoor, Stranger } from './strangers.ts';
import { forged } from './while-flowing.ts';
import { onNode } from '../../node/node.ts';

/** What strangers try, from the WAN and from a site's LAN. */

const VXLAN_PORT = 4789;
const GENEVE_PORT = 6081;
const ANY_MAC = '02:00:00:00:00:01';
const STRANGER_MAC = '02:bb:bb:bb:bb:bb';

const repeated = (packet: Bytes, count = COUNT): Bytes[] => Array.from({ length: count }, () => packet);
const framed = (packet: Bytes) => ethernet({ to: ANY_MAC, from: '02:00:00:00:00:02' }, packet);

/** At the port of clients, which is all that strangers see of a relay of the cluster. */
export const relayAttempts = (stranger: Stranger, relay: RelayDoor): Attempt[] =>
  strangerAttempts
    .filter(({ needs }) => needs === undefined)
    .map(({ name }) => ({
      name: `relay, from ${stranger.name}: ${name}`,
      expected: 'rejected',
      run: () => stranger.atRelay(name, relay),
    }));

/** Of links between replicas, and of health: the cluster's, or the relay's host alone. */
const INNER_RELAY_PORTS = [3479, 9994];

export const innerRelayAttempts = (stranger: Stranger, host: string): Attempt[] =>
  INNER_RELAY_PORTS.map((port) => ({
    name: `relay, from ${stranger.name}: TCP ${port}`,
    expected: 'rejected',
    run: () => stranger.atPort('closed', host, port),
  }));

export interface Door {
  readonly host: string;
  readonly ports: readonly OpenPort[];
}

/** At every open port: of each of the hosts that have it, all at once. */
export const portAttempts = (stranger: Stranger, doors: readonly Door[]): Attempt[] => {
  const hosts = new Map<string, string[]>();
  for (const { host, ports } of doors)
    for (const { protocol, port } of ports) {
      const key = `${protocol} ${port}`;
      hosts.set(key, [...new Set([...(hosts.get(key) ?? []), host])]);
    }
  return [...hosts].map(([key, at]) => {
    const [protocol, port] = key.split(' ') as ['tcp' | 'udp', string];
    return {
      name: `${protocol.toUpperCase()} ${port} of ${at.join(', ')}, from ${stranger.name}`,
      expected: 'rejected',
      run: async () => (await Promise.all(at.map((host) => stranger.atPort(protocol, host, Number(port))))).join(' | '),
    };
  });
};

export interface PacketTargets {
  /** Nodes, each at the address at which the stranger reaches it. */
  readonly nodes: readonly { readonly node: LabNode; readonly address: string }[];
  readonly victim: Pod;
  /** In whose name packets are forged. */
  readonly bystander: Pod;
}

/** Tunnels that begin at no node, to nodes: nothing of them arrives at the pod that they are for. */
export const tunnelAttempts = (stranger: Stranger, { nodes, victim, bystander }: PacketTargets): Attempt[] => {
  const inner = forged(bystander.ip, victim.ip);
  const kinds: Readonly<Record<string, (ends: { source: string; destination: string }) => Bytes>> = {
    VXLAN: (ends) => datagram(ends, [47900, VXLAN_PORT], vxlan(framed(inner))),
    GENEVE: (ends) => datagram(ends, [47900, GENEVE_PORT], geneve(framed(inner))),
    IPIP: (ends) => ipPacket(ends, IPIP, inner),
    'IPv6 in IPv4': (ends) => ipPacket(ends, IPV6_IN_IP, randomBytes(60)),
    GRE: (ends) => ipPacket(ends, GRE, inner),
  };
  return Object.entries(kinds).map(([name, make]) => ({
    name: `${name} from ${stranger.name}`,
    expected: 'dropped',
    async run() {
      for (const { address } of nodes)
        await stranger.send(repeated(make({ source: stranger.address, destination: address })));
      return `${nodes.length * COUNT} sent; the capture at the victim sees none`;
    },
  }));
};

/** In the clear, by a node that is on the stranger's segment, and that forwards as every node of Kubernetes does. */
export interface Plain {
  readonly stranger: Stranger;
  readonly by: LabNode;
  /** The node's, on that segment. */
  readonly device: string;
}

const macOf = (node: LabNode, device: string): string => {
  const [link] = JSON.parse(onNode(node.name, 'ip', '-j', 'link', 'show', device)) as [{ address: string }];
  return link.address;
};

/** In the name of a pod. */
export const spoofAttempts = (
  { stranger, by, device }: Plain,
  { victim, bystander }: Pick<PacketTargets, 'victim' | 'bystander'>,
): Attempt[] => {
  const to = macOf(by, device);
  const attempt = (whose: string, source: string): Attempt => ({
    name: `a plain packet from ${stranger.name} in the name of ${whose}`,
    expected: 'dropped',
    run: () =>
      expectDropped([by.name], COUNT, () =>
        stranger.sendFrames(repeated(ethernet({ to, from: STRANGER_MAC }, forged(source, victim.ip)))),
      ),
  });
  return [attempt('a pod of another site', bystander.ip), attempt('the pod itself', victim.ip)];
};

/** In its own name, to pods that are behind a tunnel: whoever is at its end takes nothing of strangers. */
export const ownNameAttempts = ({ stranger, by, device }: Plain, behind: readonly Pod[]): Attempt[] => {
  const to = macOf(by, device);
  return behind.map((pod) => ({
    name: `a plain packet from ${stranger.name} in its own name by ${by.name} to a pod on ${pod.node}`,
    expected: 'dropped',
    async run() {
      await stranger.sendFrames(repeated(ethernet({ to, from: STRANGER_MAC }, forged(stranger.address, pod.ip))));
      return `${COUNT} sent; the capture at the pod sees none`;
    },
  }));
};

/** What spoils a LAN for others, about addresses of the overlay. */
export const lanAttempts = (stranger: Stranger, { nodes, victim, bystander }: PacketTargets): Attempt[] => {
  const { node: home } = nodes.find(({ node }) => node.name === victim.node)!;
  const claimed = (whose: string, ip: string): Attempt => ({
    name: `gratuitous ARP on the LAN for ${whose}`,
    expected: 'dropped',
    async run() {
      await stranger.sendFrames(repeated(gratuitousArp({ mac: STRANGER_MAC, ip })));
      const seen = onNode(home.name, 'ip', 'neigh');
      if (seen.includes(STRANGER_MAC)) throw new Error(`it was believed: ${seen}`);
      return 'nobody believes it';
    },
  });
  return [claimed('a pod of another site', bystander.ip), claimed('a pod of a neighbour', victim.ip)];
};
