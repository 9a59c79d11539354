import { ip, run } from './command.ts';
import { type VmNode, vmNodes } from './nodes.ts';

/**
 * The underlay: one namespace holds the switches of both LANs and of the WAN, which are not joined there. Workers are
 * on their LAN only, gateways also on the WAN. Pods get their namespace and a veth into the node's bridge.
 */

export const SWITCHES = 'switches';
/** The segments as devices of {@link SWITCHES}. */
export const SEGMENTS = ['lan1', 'lan2', 'wan'] as const;
export type Segment = (typeof SEGMENTS)[number];

export const podOf = (node: VmNode): string => `pod-${node.name}`;

const plug = async (node: VmNode, segment: Segment, device: string, address: string): Promise<void> => {
  await ip(SWITCHES, [
    `link add ${node.name}-${segment} type veth peer name ${device} netns ${node.name}`,
    `link set ${node.name}-${segment} master ${segment} up`,
  ]);
  await ip(node.name, [`addr add ${address} dev ${device}`, `link set ${device} up`]);
};

export const makeUnderlay = async (): Promise<void> => {
  for (const name of [SWITCHES, ...vmNodes.flatMap((node) => [node.name, podOf(node)])]) {
    await run(['ip', 'netns', 'add', name]);
    await ip(name, ['link set lo up']);
  }
  await ip(
    SWITCHES,
    SEGMENTS.flatMap((name) => [`link add ${name} type bridge`, `link set ${name} up`]),
  );
  await ip(SWITCHES, [
    'addr add 10.1.0.1/24 dev lan1',
    'addr add 10.2.0.1/24 dev lan2',
    'addr add 203.0.113.254/24 dev wan',
  ]);
  for (const node of vmNodes) {
    await plug(node, `lan${node.site}`, 'eth0', `${node.internalIp}/24`);
    if (node.externalIp !== undefined) await plug(node, 'wan', 'eth1', `${node.externalIp}/24`);
    await ip(node.name, [
      `route add default via ${node.externalIp === undefined ? `10.${node.site}.0.1` : '203.0.113.254'}`,
    ]);
  }
};

/** Does what the CNI bridge plug-in does, once the agent has made the bridge. */
export const plugPod = async (node: VmNode, mtuBytes: number): Promise<void> => {
  await ip(node.name, [
    `link add veth-pod mtu ${mtuBytes} type veth peer name eth0 mtu ${mtuBytes} netns ${podOf(node)}`,
    'link set veth-pod master cbr0 up',
  ]);
  await ip(podOf(node), [
    `addr add ${node.podIp}/24 dev eth0`,
    'link set eth0 up',
    `route add default via ${node.bridgeIp}`,
  ]);
};
