import { randomBytes } from 'node:crypto';
import {
  BROADCAST_MAC,
  datagram,
  ethernet,
  geneve,
  gratuitousArp,
  IPIP,
  ipPacket,
  IPV6_IN_IP,
  neighborAdvertisement,
  routerAdvertisement,
  vxlan,
} from '@unbounded/testing/packets';
import type { LabNode } from '../../layout/layout.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { tryInPod } from '../scenario.ts';
import type { Attempt } from './attempts.ts';
import { expectDropped } from './evidence.ts';
import { COUNT, frameFromPod, fromPod } from './inject.ts';
import { forged } from './while-flowing.ts';

/** What a pod tries that has every capability inside its own network namespace, and none outside. */

export interface PodTargets {
  readonly attacker: Pod;
  /** The node of the attacker, another worker and the gateway of its site, a worker and the gateway of another site. */
  readonly home: LabNode;
  readonly neighbour: LabNode;
  readonly gateway: LabNode;
  readonly farWorker: LabNode;
  readonly farGateway: LabNode;
  /** Pods: beside the attacker on its node, on the neighbour, in another site. */
  readonly beside: Pod;
  readonly victim: Pod;
  readonly farVictim: Pod;
}

const VXLAN_PORT = 4789;
const GENEVE_PORT = 6081;
const WIREGUARD_PORTS = [51820, 51821] as const;
const ANY_MAC = '02:00:00:00:00:01';

const framed = (packet: Uint8Array) => ethernet({ to: ANY_MAC, from: '02:00:00:00:00:02' }, packet);

interface Mac {
  readonly own: string;
  /** Of the bridge, as the pod has learned it. */
  readonly router: string;
}

const macsOf = (pod: Pod): Mac => {
  const link = tryInPod(pod, 'ip', '-j', 'link', 'show', 'eth0') ?? '[]';
  const [entry] = JSON.parse(link) as { address: string }[];
  tryInPod(pod, 'ping', '-c', '1', '-W', '1', pod.ip.replace(/\d+$/, '1'));
  const neighbours = JSON.parse(tryInPod(pod, 'ip', '-j', '-4', 'neigh', 'show', 'dev', 'eth0') ?? '[]') as {
    lladdr?: string;
  }[];
  const router = neighbours.find(({ lladdr }) => lladdr !== undefined)?.lladdr;
  if (!entry || !router) throw new Error(`pod ${pod.name} has no device or no router`);
  return { own: entry.address, router };
};

/** Tunnel packets to nodes: dropped at the pod's own node, whatever is in them. */
const tunnelAttempts = ({
  attacker,
  home,
  neighbour,
  gateway,
  farWorker,
  farGateway,
  victim,
  farVictim,
}: PodTargets): Attempt[] => {
  const from = attacker.ip;
  const attempt = (name: string, packet: Uint8Array): Attempt => ({
    name,
    expected: 'dropped',
    run: () => expectDropped([home.name], COUNT, () => fromPod(attacker, packet)),
  });
  const udp = (to: string, port: number, payload: Uint8Array) =>
    datagram({ source: from, destination: to }, [40000, port], payload);
  const toVictim = framed(forged(farVictim.ip, victim.ip));
  const toFar = framed(forged(victim.ip, farVictim.ip));
  return [
    attempt('VXLAN to the neighbour of its node', udp(neighbour.internalIp, VXLAN_PORT, vxlan(toVictim))),
    attempt('VXLAN to its own node', udp(home.internalIp, VXLAN_PORT, vxlan(toVictim))),
    attempt('VXLAN to the gateway of its site', udp(gateway.internalIp, VXLAN_PORT, vxlan(toFar))),
    attempt('VXLAN to a worker of another site', udp(farWorker.internalIp, VXLAN_PORT, vxlan(toFar))),
    attempt(
      'VXLAN to another site’s gateway over the Internet',
      udp(farGateway.external!.ip, VXLAN_PORT, vxlan(toFar)),
    ),
    attempt('GENEVE to the neighbour of its node', udp(neighbour.internalIp, GENEVE_PORT, geneve(toVictim))),
    attempt('GENEVE to a worker of another site', udp(farWorker.internalIp, GENEVE_PORT, geneve(toFar))),
    attempt(
      'IPIP to the neighbour of its node',
      ipPacket({ source: from, destination: neighbour.internalIp }, IPIP, forged(farVictim.ip, victim.ip)),
    ),
    attempt(
      'IPIP to a worker of another site',
      ipPacket({ source: from, destination: farWorker.internalIp }, IPIP, forged(victim.ip, farVictim.ip)),
    ),
    attempt(
      'IPv6 in IPv4 to the neighbour of its node',
      ipPacket({ source: from, destination: neighbour.internalIp }, IPV6_IN_IP, randomBytes(60)),
    ),
    ...WIREGUARD_PORTS.map((port) =>
      attempt(`WireGuard’s port ${port} of its gateway`, udp(gateway.internalIp, port, randomBytes(148))),
    ),
    attempt(
      'WireGuard’s port of another site’s gateway',
      udp(farGateway.external!.ip, WIREGUARD_PORTS[1], randomBytes(148)),
    ),
    attempt('WireGuard’s port of its own node', udp(home.internalIp, WIREGUARD_PORTS[0], randomBytes(148))),
  ];
};

/** Addresses and MACs that are not its own. */
const spoofAttempts = ({ attacker, home, beside, victim, farVictim }: PodTargets): Attempt[] => {
  const { own, router } = macsOf(attacker);
  const frame = (name: string, bytes: Uint8Array): Attempt => ({
    name,
    expected: 'dropped',
    run: () => expectDropped([home.name], COUNT, () => frameFromPod(attacker, bytes)),
  });
  const packet = (source: string, destination: string, from = own, to = router) =>
    ethernet({ to, from }, forged(source, destination));
  const bridge = attacker.ip.replace(/\d+$/, '1');
  const mac = '02:bb:bb:bb:bb:bb';
  return [
    frame('a packet with the address of the pod beside it', packet(beside.ip, farVictim.ip)),
    frame('a packet with the address of a pod on the neighbour', packet(victim.ip, farVictim.ip)),
    frame('a packet with the address of a pod of another site', packet(farVictim.ip, victim.ip)),
    frame('a packet with its node’s address', packet(home.internalIp, farVictim.ip)),
    frame('a packet with its router’s address', packet(bridge, beside.ip)),
    frame('a packet with an address of the Internet', packet('8.8.8.8', beside.ip)),
    frame('a packet with its own address and another MAC', packet(attacker.ip, farVictim.ip, mac)),
    frame('gratuitous ARP for its router', gratuitousArp({ mac: own, ip: bridge })),
    frame('gratuitous ARP for the pod beside it', gratuitousArp({ mac: own, ip: beside.ip })),
    frame('gratuitous ARP for itself with another MAC', gratuitousArp({ mac, ip: attacker.ip })),
    frame('a router advertisement', routerAdvertisement(own, 'fe80::bb')),
    frame('a neighbor advertisement for another address', neighborAdvertisement({ mac: own, ip: 'fe80::1' })),
    frame(
      'a frame of a VLAN',
      ethernet(
        { to: BROADCAST_MAC, from: own, type: 0x8100 },
        Uint8Array.from([0, 5, 8, 0, ...forged(attacker.ip, beside.ip)]),
      ),
    ),
    frame(
      'a bridge protocol data unit',
      ethernet({ to: '01:80:c2:00:00:00', from: own, type: 0x0026 }, randomBytes(50)),
    ),
  ];
};

/** Ports of the node's programs. */
const portAttempts = ({ attacker, home }: PodTargets): Attempt[] => [
  {
    name: 'readiness of its node’s agent',
    expected: 'rejected',
    run: async () => {
      const answer = tryInPod(attacker, 'curl', '-sf', '--max-time', '2', `http://${home.internalIp}:9998/readyz`);
      if (answer !== undefined) throw new Error(`it answered ${answer}`);
      return 'no readiness there';
    },
  },
];

export const podAttempts = (targets: PodTargets): Attempt[] => [
  ...tunnelAttempts(targets),
  ...spoofAttempts(targets),
  ...portAttempts(targets),
];
