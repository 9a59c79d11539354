import { datagram, ethernet, ipPacket, vxlan } from '@unbounded/testing/packets';
import type { LabNode } from '../../layout/layout.ts';
import type { Attempt } from '../hostile/attempts.ts';
import { expectDropped } from '../hostile/evidence.ts';
import { COUNT, fromNode, fromPod } from '../hostile/inject.ts';
import { macOf } from '../hostile/boundary.attempts.ts';
import { forged } from '../hostile/while-flowing.ts';
import type { OnLan } from './place.ts';

/** Frames in SRv6 (RFC 8986) of somebody's own making: of a pod, which may send none, and of root on a node, past everything of ours there. */

export interface LocatorTargets {
  readonly attacker: OnLan;
  /** The node of the attacker, and the one of the same site that is sent to. */
  readonly home: LabNode;
  readonly neighbour: LabNode;
  /** Pods on the neighbour and in another site. */
  readonly victim: OnLan;
  readonly far: OnLan;
  /** A node's locator, without its length: fd53:0:0:1:: */
  readonly locatorOf: (node: string) => string;
  /** Number of the Network. */
  readonly network: number;
}

const VXLAN_PORT = 4789;
const ETHERNET_IN_IPV6 = 143;
const DT2U = 1;
const ANY_MAC = '02:00:00:00:00:01';
const STRANGER_MAC = '02:bb:bb:bb:bb:bb';

/** 64 bits locator, 16 bits behavior, 32 bits Network, 16 bits zero. */
const sidOf = (locator: string, behavior: number, network: number): string =>
  `${locator.replace(/::$/, '')}:${[behavior, network >>> 16, network & 0xffff, 0].map((word) => word.toString(16)).join(':')}`;

const frameOf = (from: OnLan, to: OnLan, macs: { readonly from?: string; readonly to?: string } = {}) =>
  ethernet({ from: macs.from ?? from.mac, to: macs.to ?? to.mac }, forged(from.ipv4, to.ipv4));

const inSrv6 = (source: string, destination: string, frame: Uint8Array) =>
  ipPacket({ source, destination }, ETHERNET_IN_IPV6, frame);

export const podLocatorAttempts = (targets: LocatorTargets): Attempt[] => {
  const { attacker, home, neighbour, victim, far, locatorOf, network } = targets;
  const own = attacker.pod.ips.find((ip) => ip.includes(':'))!;
  const sid = (node: string) => sidOf(locatorOf(node), DT2U, network);
  const attempt = (name: string, packet: Uint8Array): Attempt => ({
    name,
    expected: 'dropped',
    run: () => expectDropped([home.name], COUNT, () => fromPod(attacker.pod, packet)),
  });
  const toNeighbour = inSrv6(own, sid(neighbour.name), frameOf(far, victim));
  return [
    attempt('a pod’s SRv6 to the locator of the neighbour', toNeighbour),
    attempt('a pod’s SRv6 to a locator of another site', inSrv6(own, sid(far.pod.node), frameOf(victim, far))),
    attempt('a pod’s SRv6 to the locator of its own node', inSrv6(own, sid(home.name), frameOf(far, attacker))),
    attempt(
      'a pod’s SRv6 in the name of its node’s locator',
      inSrv6(locatorOf(home.name), sid(neighbour.name), frameOf(attacker, victim)),
    ),
    attempt(
      'a pod’s SRv6 inside of VXLAN to the neighbour',
      datagram(
        { source: attacker.pod.ip, destination: neighbour.internalIp },
        [40000, VXLAN_PORT],
        vxlan(ethernet({ to: ANY_MAC, from: STRANGER_MAC }, toNeighbour)),
      ),
    ),
  ];
};

/** By the tunnel of the site, with the node's own address outside. */
export const nodeLocatorAttempts = (targets: LocatorTargets): Attempt[] => {
  const { attacker, home, neighbour, victim, far, locatorOf, network } = targets;
  // The kernel's own routing takes no other: a packet to another MAC would be in vain without a drop that is counted.
  const tunnelMac = macOf(neighbour, 'vxlan0');
  const attempt = (name: string, inner: Uint8Array): Attempt => ({
    name,
    expected: 'dropped',
    run: () =>
      expectDropped([neighbour.name], COUNT, () =>
        fromNode(
          home.name,
          datagram(
            { source: home.internalIp, destination: neighbour.internalIp },
            [47900, VXLAN_PORT],
            vxlan(ethernet({ to: tunnelMac, from: STRANGER_MAC }, inner)),
          ),
        ),
      ),
  });
  const own = locatorOf(home.name);
  const there = (behavior = DT2U, number = network) => sidOf(locatorOf(neighbour.name), behavior, number);
  return [
    attempt('a node’s frame in the name of a pod of another site', inSrv6(own, there(), frameOf(far, victim))),
    attempt('a node’s frame in the name of the receiver’s own pod', inSrv6(own, there(), frameOf(victim, victim))),
    attempt(
      'a node’s frame in the name of nobody',
      inSrv6(own, there(), frameOf(attacker, victim, { from: STRANGER_MAC })),
    ),
    attempt(
      'a node’s frame in the name of another site’s pod, from that node’s locator',
      inSrv6(locatorOf(far.pod.node), there(), frameOf(far, victim)),
    ),
    attempt(
      'a node’s frame with the number of another Network',
      inSrv6(own, there(DT2U, network + 77), frameOf(attacker, victim)),
    ),
    attempt('a node’s frame for a behavior that there is not', inSrv6(own, there(9), frameOf(attacker, victim))),
    attempt(
      'a node’s frame to a MAC that is not of the receiver',
      inSrv6(own, there(), frameOf(attacker, victim, { to: far.mac })),
    ),
    attempt('half of a frame', inSrv6(own, there(), frameOf(attacker, victim).subarray(0, 9))),
  ];
};
