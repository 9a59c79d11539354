import { randomBytes } from 'node:crypto';
import {
  datagram,
  ethernet,
  geneve,
  gratuitousArp,
  GRE,
  IPIP,
  ipPacket,
  IPV6_IN_IP,
  routerAdvertisement,
  vxlan,
} from '@unbounded/testing/packets';
import type { Pod } from '../../checks/test-pod.ts';
import type { Attempt } from './attempts.ts';
import { expectDropped } from './evidence.ts';
import { allFromNode, COUNT, frameFromNode, fromNode } from './inject.ts';
import type { Targets } from './node-objects.attempts.ts';
import { forged } from './while-flowing.ts';
import { onNode } from '../../node/node.ts';

/** What root on a worker sends by itself, past everything of ours on its node. */

const VXLAN_PORT = 4789;
const GENEVE_PORT = 6081;
const HEALTH_PORT = 9997;
const WIREGUARD_PORT = 51820;
/** A receiver takes frames to any MAC that reach it by its tunnel. */
const ANY_MAC = '02:00:00:00:00:01';

export interface PacketTargets extends Targets {
  /** A pod on the neighbour, and one on a worker of another site. */
  readonly victim: Pod;
  readonly farVictim: Pod;
  /** A pod of a third site, in whose name packets are forged. */
  readonly bystander: Pod;
}

const framed = (packet: Uint8Array) => ethernet({ to: ANY_MAC, from: '02:00:00:00:00:02' }, packet);

/** Inner sources that are not the hostile node's, by the site's tunnel, to every kind of receiver. */
const tunnelAttempts = ({ hostile, neighbour, gateway, victim, farVictim, bystander }: PacketTargets): Attempt[] => {
  const own = hostile.internalIp;
  const tunnelled = (to: string, inner: Uint8Array) =>
    datagram({ source: own, destination: to }, [47900, VXLAN_PORT], vxlan(framed(inner)));
  const attempt = (
    name: string,
    to: { readonly name: string; readonly internalIp: string },
    inner: Uint8Array,
  ): Attempt => ({
    name,
    expected: 'dropped',
    run: () => expectDropped([to.name], COUNT, () => fromNode(hostile.name, tunnelled(to.internalIp, inner))),
  });
  return [
    attempt('VXLAN to its neighbour in the name of a pod of another site', neighbour, forged(bystander.ip, victim.ip)),
    attempt('VXLAN to its neighbour in the name of the neighbour’s own pod', neighbour, forged(victim.ip, victim.ip)),
    attempt('VXLAN to its neighbour in the name of a stranger', neighbour, forged('8.8.8.8', victim.ip)),
    attempt('VXLAN to its gateway in the name of a pod of its neighbour', gateway, forged(victim.ip, farVictim.ip)),
    attempt('VXLAN to its gateway in the name of a pod of another site', gateway, forged(bystander.ip, farVictim.ip)),
    attempt(
      'VXLAN to its gateway in the name of its neighbour itself',
      gateway,
      forged(neighbour.internalIp, farVictim.ip),
    ),
  ];
};

/** Packets that no device of ours may take, whatever is in them: nothing arrives at the victim. */
const straySends = (targets: PacketTargets): Readonly<Record<string, readonly Uint8Array[]>> => {
  const { hostile, neighbour, gateway, farGateway, victim, bystander } = targets;
  const inner = forged(bystander.ip, victim.ip);
  const ends = { source: hostile.internalIp, destination: neighbour.internalIp };
  const toExternal = { source: hostile.internalIp, destination: farGateway.external!.ip };
  return {
    'GENEVE to its neighbour': [datagram(ends, [47900, GENEVE_PORT], geneve(framed(inner)))],
    'IPIP to its neighbour': [ipPacket(ends, IPIP, inner)],
    'IPv6 in IPv4 to its neighbour': [ipPacket(ends, IPV6_IN_IP, inner)],
    'GRE to its neighbour': [ipPacket(ends, GRE, inner)],
    'VXLAN inside of VXLAN to its neighbour': [
      datagram(
        ends,
        [47900, VXLAN_PORT],
        vxlan(
          framed(
            datagram(
              { source: bystander.ip, destination: neighbour.internalIp },
              [1, VXLAN_PORT],
              vxlan(framed(inner)),
            ),
          ),
        ),
      ),
    ],
    'VXLAN over the WAN to another site’s gateway': [datagram(toExternal, [47900, VXLAN_PORT], vxlan(framed(inner)))],
    'IPIP over the WAN to another site’s gateway': [ipPacket(toExternal, IPIP, inner)],
    'random bytes to WireGuard of its gateway': Array.from({ length: 3 }, () =>
      datagram(
        { source: hostile.internalIp, destination: gateway.internalIp },
        [40000, WIREGUARD_PORT],
        randomBytes(148),
      ),
    ),
    'a flood of what looks like path probes to WireGuard of another site’s gateway': Array.from({ length: 500 }, () =>
      datagram(toExternal, [40000, WIREGUARD_PORT], Uint8Array.from([0x80, ...randomBytes(100)])),
    ),
  };
};

const strayAttempts = (targets: PacketTargets): Attempt[] =>
  Object.entries(straySends(targets)).map(([name, packets]) => ({
    name,
    expected: 'dropped',
    async run() {
      await allFromNode(targets.hostile.name, packets, 5);
      return `${5 * packets.length} sent; the capture at the victims sees none`;
    },
  }));

/** In the clear on the LAN, with the addresses of pods. */
const plainAttempts = ({ hostile, neighbour, victim, bystander }: PacketTargets): Attempt[] => {
  const mac = (JSON.parse(onNode(neighbour.name, 'ip', '-j', 'link', 'show', 'eth0')) as { address: string }[])[0]!
    .address;
  const frame = (source: string, destination: string): Uint8Array =>
    ethernet({ to: mac, from: ANY_MAC }, forged(source, destination));
  const attempt = (name: string, source: string): Attempt => ({
    name,
    expected: 'dropped',
    run: () =>
      expectDropped([neighbour.name], COUNT, () => frameFromNode(hostile.name, 'eth0', frame(source, victim.ip))),
  });
  return [
    attempt('a plain packet to a pod in the name of a pod of another site', bystander.ip),
    attempt('a plain packet to a pod in the name of a pod of the same node', victim.ip),
  ];
};

/** Probes of health: their packets are authenticated. */
const probeAttempts = ({ hostile, neighbour, farWorker, victim, farVictim }: PacketTargets): Attempt[] => {
  const source = onNode(hostile.name, 'ip', '-4', '-o', 'addr', 'show', 'cbr0').match(/inet ([\d.]+)/)![1]!;
  /** A node listens for probes on the first address of its pods' block. */
  const probed = ({ ip }: Pod): string => ip.replace(/\d+$/, '1');
  const attempt = (name: string, to: { readonly name: string }, destination: string, bytes: Uint8Array): Attempt => ({
    name,
    expected: 'dropped',
    run: () =>
      expectDropped([to.name], COUNT, () =>
        fromNode(hostile.name, datagram({ source, destination }, [HEALTH_PORT, HEALTH_PORT], bytes)),
      ),
  });
  return [
    attempt('forged probes to its neighbour', neighbour, probed(victim), randomBytes(96)),
    attempt('probes that are too short to its neighbour', neighbour, probed(victim), randomBytes(8)),
    attempt('forged probes to a worker of another site', farWorker, probed(farVictim), randomBytes(96)),
  ];
};

/** What spoils a LAN for others, about addresses that are the overlay's: their neighbors ask nobody for these. */
const lanAttempts = ({ hostile, neighbour, victim, bystander }: PacketTargets): Attempt[] => {
  const claimed = (name: string, frame: Uint8Array, look: readonly string[], wrong: RegExp): Attempt => ({
    name,
    expected: 'dropped',
    async run() {
      await frameFromNode(hostile.name, 'eth0', frame);
      const seen = onNode(neighbour.name, ...look);
      if (wrong.test(seen)) throw new Error(`it was believed: ${seen}`);
      return 'nobody believes it';
    },
  });
  const mac = '02:bb:bb:bb:bb:bb';
  const neighbours = ['ip', 'neigh'];
  return [
    claimed(
      'gratuitous ARP for a pod of another site',
      gratuitousArp({ mac, ip: bystander.ip }),
      neighbours,
      /02:bb:bb/,
    ),
    claimed('gratuitous ARP for a pod of its neighbour', gratuitousArp({ mac, ip: victim.ip }), neighbours, /02:bb:bb/),
    claimed(
      'a router advertisement on the LAN',
      routerAdvertisement(mac, 'fe80::bb'),
      ['ip', '-6', 'route'],
      /default.*fe80::bb/,
    ),
  ];
};

export const packetAttempts = (targets: PacketTargets): Attempt[] => [
  ...tunnelAttempts(targets),
  ...strayAttempts(targets),
  ...plainAttempts(targets),
  ...probeAttempts(targets),
  ...lanAttempts(targets),
];
