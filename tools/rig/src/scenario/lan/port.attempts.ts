import { randomBytes } from 'node:crypto';
import {
  arpRequest,
  BROADCAST_MAC,
  datagram,
  ethernet,
  gratuitousArp,
  neighborAdvertisement,
  neighborSolicitation,
  redirectMessage,
  routerAdvertisement,
} from '@unbounded/testing/packets';
import type { Attempt } from '../hostile/attempts.ts';
import { expectDropped } from '../hostile/evidence.ts';
import { COUNT, frameFromPod } from '../hostile/inject.ts';
import { forged, MARK_PORT } from '../hostile/while-flowing.ts';
import type { OnLan } from './place.ts';

/** What a pod tries by its own interface on the LAN, as root of its network namespace. */

export interface PortTargets {
  readonly attacker: OnLan;
  /** Pods on the attacker's node and in another site. */
  readonly beside: OnLan;
  readonly far: OnLan;
}

const INTERFACE = 'net1';
/** Of nobody. */
const STRANGER = { mac: '02:bb:bb:bb:bb:bb', ipv4: '192.168.77.1', ipv6: 'fd77::bb' } as const;
const MULTICAST = { mac: '01:00:5e:01:02:03', ip: '239.1.2.3' } as const;
const [DHCP_SERVER, DHCP_CLIENT] = [67, 68];
const [DHCPV6_SERVER, DHCPV6_CLIENT] = [547, 546];
/** Network.spec.multicast of the lab replicates; a port has tokens for some hundred of these frames a second. */
const STORM = 4000;

export const portAttempts = ({ attacker, beside, far }: PortTargets): Attempt[] => {
  const home = attacker.pod.node;
  const frame = (name: string, bytes: Uint8Array, count = COUNT, atLeast = count): Attempt => ({
    name,
    expected: 'dropped',
    run: () => expectDropped([home], atLeast, () => frameFromPod(attacker.pod, bytes, INTERFACE, count)),
  });
  const [own, to] = [attacker.mac, far.mac];
  const marked = (source: string, destination: string, from = own, dst = to) =>
    ethernet({ to: dst, from }, forged(source, destination));
  const ports = (source: string, destination: string, numbers: readonly [number, number], dst = to) =>
    ethernet({ to: dst, from: own }, datagram({ source, destination }, numbers, randomBytes(240)));
  const tagged = (type: number) =>
    ethernet({ to, from: own, type }, Uint8Array.from([0, 5, 8, 0, ...marked(attacker.ipv4, far.ipv4).subarray(14)]));
  const typed = (group: string, type: number) => ethernet({ to: group, from: own, type }, randomBytes(50));
  return [
    frame('a packet of its own with the MAC of the pod beside it', marked(attacker.ipv4, far.ipv4, beside.mac)),
    frame('a packet of its own with the MAC of nobody', marked(attacker.ipv4, far.ipv4, STRANGER.mac)),
    frame('a packet with the IPv4 address of the pod beside it', marked(beside.ipv4, far.ipv4)),
    frame('a packet with the IPv6 address of the pod beside it', marked(beside.ipv6, far.ipv6)),
    frame('a packet with the receiver’s own address', marked(far.ipv4, far.ipv4)),
    frame('a packet with an address of the LAN that is nobody’s', marked(STRANGER.ipv4, far.ipv4)),
    frame('a packet with an address of the Internet', marked('8.8.8.8', far.ipv4)),
    frame('gratuitous ARP for a pod of another site', gratuitousArp({ mac: own, ip: far.ipv4 })),
    frame('gratuitous ARP for an address that is nobody’s', gratuitousArp({ mac: own, ip: STRANGER.ipv4 })),
    frame('gratuitous ARP for itself with another MAC', gratuitousArp({ mac: STRANGER.mac, ip: attacker.ipv4 }, own)),
    frame('an ARP request in the name of the pod beside it', arpRequest({ mac: own, ip: beside.ipv4 }, far.ipv4)),
    frame('an ARP request with another MAC in it', arpRequest({ mac: STRANGER.mac, ip: attacker.ipv4 }, far.ipv4, own)),
    frame('a neighbor advertisement for a pod of another site', neighborAdvertisement({ mac: own, ip: far.ipv6 })),
    frame(
      'a neighbor advertisement for itself with another MAC',
      neighborAdvertisement({ mac: STRANGER.mac, ip: attacker.ipv6 }, own),
    ),
    frame(
      'a neighbor solicitation in the name of the pod beside it',
      neighborSolicitation({ mac: own, ip: beside.ipv6 }, far.ipv6),
    ),
    frame(
      'a neighbor solicitation with another MAC in it',
      neighborSolicitation({ mac: STRANGER.mac, ip: attacker.ipv6 }, far.ipv6, own),
    ),
    frame('a router advertisement', routerAdvertisement(own, attacker.ipv6)),
    frame('an ICMPv6 redirect', redirectMessage({ mac: own, ip: attacker.ipv6 }, far.ipv6)),
    frame('an answer of a DHCP server', ports(attacker.ipv4, far.ipv4, [DHCP_SERVER, DHCP_CLIENT])),
    frame('an answer of a DHCPv6 server', ports(attacker.ipv6, far.ipv6, [DHCPV6_SERVER, DHCPV6_CLIENT])),
    frame('a frame with an 802.1Q tag', tagged(0x8100)),
    frame('a frame with an 802.1ad tag', tagged(0x88a8)),
    frame('a frame of the spanning tree', typed('01:80:c2:00:00:00', 0x0026)),
    frame('a frame of LLDP', typed('01:80:c2:00:00:0e', 0x88cc)),
    frame('a packet to a MAC that is nobody’s', marked(attacker.ipv4, far.ipv4, own, STRANGER.mac)),
    frame('a packet to everybody', marked(attacker.ipv4, '192.168.77.255', own, BROADCAST_MAC)),
    frame(
      'a storm of packets to a group',
      ports(attacker.ipv4, MULTICAST.ip, [MARK_PORT, MARK_PORT + 1], MULTICAST.mac),
      STORM,
      STORM / 2,
    ),
  ];
};
