import { execFileSync } from 'node:child_process';
import { createNetns, createRouteSocket, createTun, type Netns } from '@unbounded/netlink';
import type { EchoPlan } from '@unbounded/topology';

/** A node and its gateways, on one wire: all gateways are one namespace, with an overlay address and a block for each. */

const TUN = 'unbounded-echo';
export const NODE_ADDRESS = '10.9.0.1';
const ECHO_ADDRESS = '10.8.0.0';
export const gatewayAddress = (index: number): string => `10.9.1.${index + 1}`;
const echoAddressAt = (index: number): string => `10.8.${index + 1}.0`;

export interface EchoNetwork extends Disposable {
  readonly node: Netns;
  readonly gateways: Netns;
  readonly echoDevice: { readonly name: string; readonly index: number };
}

const runIn = (netns: Netns, ...argv: string[]): string =>
  execFileSync('nsenter', [`--net=${netns.path}`, ...argv], { encoding: 'utf8' });

const set = (netns: Netns, key: string, value: number): void =>
  void runIn(netns, 'sysctl', '-qw', `net.ipv4.${key}=${value}`);

/** Turns echoes round where they leave, as the netlink data path does. */
const TURN_ROUND = `add table inet echo
add chain inet echo out { type filter hook postrouting priority 110; }
add rule inet echo out iifname ${TUN} ip saddr ${ECHO_ADDRESS} ip daddr set ${ECHO_ADDRESS}`;

export const layEchoNetwork = async (gatewayCount: number): Promise<EchoNetwork> => {
  const [node, gateways] = [createNetns(), createNetns()];
  runIn(node, 'ip', 'link', 'add', 'wire', 'type', 'veth', 'peer', 'name', 'wire', 'netns', gateways.path);
  runIn(node, 'ip', 'addr', 'add', `${NODE_ADDRESS}/16`, 'dev', 'wire');
  for (let index = 0; index < gatewayCount; index++)
    runIn(gateways, 'ip', 'addr', 'add', `${gatewayAddress(index)}/16`, 'dev', 'wire');
  for (const netns of [node, gateways]) {
    runIn(netns, 'ip', 'link', 'set', 'wire', 'up');
    set(netns, 'ip_forward', 1);
    set(netns, 'conf.all.send_redirects', 0);
    set(netns, 'conf.wire.send_redirects', 0);
  }
  createTun({ name: TUN, netnsFd: node.fd });
  await using net = createRouteSocket({ netnsFd: node.fd });
  await net.links.modify(TUN, { up: true });
  for (const name of ['all', TUN, 'wire']) set(node, `conf.${name}.rp_filter`, 0);
  runIn(node, 'ip', 'route', 'add', ECHO_ADDRESS, 'dev', TUN);
  runIn(node, 'nft', TURN_ROUND);
  runIn(gateways, 'ip', 'route', 'add', ECHO_ADDRESS, 'via', NODE_ADDRESS);
  for (let index = 0; index < gatewayCount; index++)
    runIn(node, 'ip', 'route', 'add', echoAddressAt(index), 'via', gatewayAddress(index));
  return {
    ...{ node, gateways, echoDevice: { name: TUN, index: (await net.links.get(TUN))!.index } },
    [Symbol.dispose]() {
      node.close();
      gateways.close();
    },
  };
};

export const echoThrough = (gateway: string, index: number): EchoPlan => ({
  ...{ node: gateway, family: 4, localAddress: ECHO_ADDRESS, address: echoAddressAt(index) },
  via: { protocol: 'WireGuard', node: gateway, device: 'wire' },
});
