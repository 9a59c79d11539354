import { datagram, ethernet, icmpTooBig, vxlan } from '@unbounded/testing/packets';
import type { LabNode } from '../../layout/layout.ts';
import { onNode } from '../../node/node.ts';
import type { Attempt } from './attempts.ts';
import { expectDropped } from './evidence.ts';
import { COUNT, frameFromNode, fromNode, fromPod } from './inject.ts';
import type { PacketTargets } from './node-packets.attempts.ts';
import type { PodTargets } from './pod.attempts.ts';
import type { Plain } from './stranger.attempts.ts';
import { MARK_PORT } from './while-flowing.ts';

/** Ways out of the overlay and into it by nodes that are neither an exit nor a router for whoever tries. */

const VXLAN_PORT = 4789;
const ANY_MAC = '02:00:00:00:00:01';
/** Where clouds have their metadata services. */
const METADATA = '169.254.169.254';
/** Somebody on the WAN. */
const OUTSIDE = '203.0.113.66';

const marked = (source: string, destination: string) =>
  datagram({ source, destination }, [MARK_PORT, MARK_PORT], new TextEncoder().encode('out'));

/** An address of a pod of the node that it gave to none. */
const ownPod = ({ name }: LabNode): string =>
  onNode(name, 'ip', '-4', '-o', 'addr', 'show', 'cbr0').match(/inet (\d+\.\d+\.\d+)\./)![1]! + '.250';

export const macOf = (node: LabNode, device: string): string =>
  (JSON.parse(onNode(node.name, 'ip', '-j', 'link', 'show', device)) as [{ address: string }])[0].address;

/** In its own name, by the tunnel of another node, to what is outside of the network. */
const exitAttempts = (targets: PacketTargets): Attempt[] => {
  const { hostile, neighbour, gateway, farVictim } = targets;
  const source = ownPod(hostile);
  const by = (node: LabNode, where: string, destination: string): Attempt => {
    const inner = ethernet({ to: macOf(node, 'vxlan0'), from: ANY_MAC }, marked(source, destination));
    const ends = { source: hostile.internalIp, destination: node.internalIp };
    return {
      name: `by the tunnel of ${node.name} to ${where}`,
      expected: 'dropped',
      run: () =>
        expectDropped([node.name], COUNT, () =>
          fromNode(hostile.name, datagram(ends, [47900, VXLAN_PORT], vxlan(inner))),
        ),
    };
  };
  return [
    by(neighbour, 'a metadata service', METADATA),
    by(neighbour, 'somebody on the WAN', OUTSIDE),
    by(neighbour, 'the gateway’s address on the LAN', gateway.internalIp),
    by(neighbour, 'a pod of another site', farVictim.ip),
    by(gateway, 'a metadata service', METADATA),
    by(gateway, 'somebody on the WAN', OUTSIDE),
  ];
};

/** It says that the path between two others is narrow, in the name of one of them or of a router. */
const pathMtuAttempts = ({ hostile, neighbour, gateway }: PacketTargets): Attempt[] => {
  const quoted = datagram(
    { source: neighbour.internalIp, destination: gateway.internalIp },
    [47900, VXLAN_PORT],
    vxlan(new Uint8Array(40)),
  );
  return [hostile.internalIp, gateway.internalIp].map((source) => ({
    name: `an ICMP error to its neighbour, from ${source}: packets to the gateway are too big`,
    expected: 'dropped',
    async run() {
      const error = icmpTooBig({ source, destination: neighbour.internalIp }, 600, quoted);
      const evidence = await expectDropped([neighbour.name], COUNT, () => fromNode(hostile.name, error));
      const route = onNode(neighbour.name, 'ip', 'route', 'get', gateway.internalIp);
      if (/mtu/.test(route)) throw new Error(`it was believed: ${route}`);
      return evidence;
    },
  }));
};

/** Plainly on the LAN, in the name of nodes that are reached by a tunnel. */
const farNodeAttempts = ({ hostile, neighbour, farWorker, victim, farVictim }: PacketTargets): Attempt[] => {
  const to = macOf(neighbour, 'eth0');
  return [victim, farVictim].map((pod) => ({
    name: `a plain packet to a pod on ${pod.node} in the name of a node of another site`,
    expected: 'dropped',
    run: () =>
      expectDropped([neighbour.name], COUNT, () =>
        frameFromNode(hostile.name, 'eth0', ethernet({ to, from: ANY_MAC }, marked(farWorker.internalIp, pod.ip))),
      ),
  }));
};

export const boundaryAttempts = (targets: PacketTargets): Attempt[] => [
  ...exitAttempts(targets),
  ...pathMtuAttempts(targets),
  ...farNodeAttempts(targets),
];

/** Its tunnel packets to addresses that no list has: a node may be behind any of them. */
export const podTunnelAttempts = ({ attacker, home }: PodTargets): Attempt[] =>
  [METADATA, OUTSIDE].map((destination) => ({
    name: `VXLAN to ${destination}`,
    expected: 'dropped',
    run: () =>
      expectDropped([home.name], COUNT, () =>
        fromPod(
          attacker,
          datagram({ source: attacker.ip, destination }, [47900, VXLAN_PORT], vxlan(new Uint8Array(60))),
        ),
      ),
  }));

/** In its own name into the overlay, with a node as its router. */
export const routerAttempts = ({ stranger, by, device }: Plain, behind: readonly string[]): Attempt[] => {
  const to = macOf(by, device);
  return behind.map((destination) => ({
    name: `${stranger.name} by ${by.name} as its router to ${destination}`,
    expected: 'dropped',
    run: () =>
      expectDropped([by.name], COUNT, () =>
        stranger.sendFrames(
          Array.from({ length: COUNT }, () =>
            ethernet({ to, from: '02:bb:bb:bb:bb:bb' }, marked(stranger.address, destination)),
          ),
        ),
      ),
  }));
};
