import { execFileSync, spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { createNetns, createRouteSocket, type Netns } from '@unbounded/netlink';
import type { DeviceSpec } from '../../connectivity/kernel/devices.plan.ts';
import { ensureDevices } from '../../connectivity/kernel/devices.ts';
import { EARLIER, GATEWAY, type Host, NEIGHBOR, POD, REMOTE } from './attempts.testdata.ts';

/** A node with the bridge of its pods, three of them, and a host beyond: in the network of this process and namespaces of their own. */

export const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
export const within = (ns: Netns, ...argv: string[]): string => run('nsenter', `--net=${ns.path}`, ...argv);
export const net = createRouteSocket();

/** Forwarding is on, and what the IP hooks would drop of themselves is to reach its target, too. */
export const prepareNode = (): void => {
  run('ip', 'link', 'set', 'lo', 'up');
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
  writeFileSync('/proc/sys/net/ipv6/conf/all/forwarding', '1');
  for (const family of ['iptables', 'ip6tables', 'arptables']) {
    const setting = `/proc/sys/net/bridge/bridge-nf-call-${family}`;
    if (existsSync(setting)) writeFileSync(setting, '0');
  }
};

const makePod = async (name: string, { mac, v4, v6 }: Host): Promise<Netns> => {
  const ns = createNetns();
  const peer = { name: 'eth0', mac, netnsFd: ns.fd };
  const bridge = (await net.links.get('cbr0'))!.index;
  await net.links.create({ name, kind: { kind: 'veth', peer }, master: bridge });
  within(ns, 'ip', 'link', 'set', 'lo', 'up');
  within(ns, 'ip', 'addr', 'add', `${v4}/24`, 'dev', 'eth0');
  within(ns, 'ip', 'addr', 'add', `${v6}/64`, 'dev', 'eth0', 'nodad');
  within(ns, 'ip', 'link', 'set', 'eth0', 'up');
  run('ip', 'link', 'set', name, 'up', 'type', 'bridge_slave', 'hairpin', 'on');
  within(ns, 'ip', 'route', 'add', 'default', 'via', GATEWAY.v4);
  within(ns, 'ip', '-6', 'route', 'add', 'default', 'via', GATEWAY.v6);
  return ns;
};

export interface Network extends Disposable {
  readonly pod: Netns;
  readonly neighbor: Netns;
  readonly earlier: Netns;
  readonly remote: Netns;
}

/** As bridges are without our settings. */
export const makePlainBridge = async (): Promise<void> => {
  run('ip', 'link', 'add', 'cbr0', 'address', GATEWAY.mac, 'type', 'bridge');
  run('ip', 'addr', 'add', `${GATEWAY.v4}/24`, 'dev', 'cbr0');
  run('ip', 'addr', 'add', `${GATEWAY.v6}/64`, 'dev', 'cbr0', 'nodad');
  run('ip', 'link', 'set', 'cbr0', 'up');
};
export const makeBridge = async (): Promise<void> => {
  const addresses = [`${GATEWAY.v4}/24`, `${GATEWAY.v6}/64`];
  const spec: DeviceSpec = { name: 'cbr0', purpose: 'bridge', mtuBytes: 1500, arp: true, mac: GATEWAY.mac, addresses };
  const { problems } = await ensureDevices(net, [spec]);
  if (problems.length > 0) throw new Error(problems[0]!.message);
};

export const makeNetwork = async (makeBridge: () => Promise<void>): Promise<Network> => {
  await makeBridge();
  const remote = createNetns();
  const peer = { name: 'eth0', mac: REMOTE.mac, netnsFd: remote.fd };
  await net.links.create({ name: 'up0', kind: { kind: 'veth', peer } });
  for (const [address, far] of [
    ['192.0.2.1/24', `${REMOTE.v4}/24`],
    ['2001:db8::1/64', `${REMOTE.v6}/64`],
  ] as const) {
    run('ip', 'addr', 'add', address, 'dev', 'up0', ...(address.includes(':') ? ['nodad'] : []));
    within(remote, 'ip', 'addr', 'add', far, 'dev', 'eth0', ...(far.includes(':') ? ['nodad'] : []));
  }
  run('ip', 'link', 'set', 'up0', 'up');
  within(remote, 'ip', 'link', 'set', 'eth0', 'up');
  within(remote, 'ip', 'route', 'add', 'default', 'via', '192.0.2.1');
  within(remote, 'ip', '-6', 'route', 'add', 'default', 'via', '2001:db8::1');
  const pods = { pod: await makePod('veth0', POD), neighbor: await makePod('veth1', NEIGHBOR) };
  const earlier = await makePod('veth2', EARLIER);
  return {
    ...pods,
    earlier,
    remote,
    [Symbol.dispose]: () => {
      for (const link of ['veth0', 'veth1', 'veth2', 'up0', 'cbr0']) run('ip', 'link', 'del', link);
      for (const ns of [pods.pod, pods.neighbor, earlier, remote]) ns.close();
    },
  };
};

export const pings = (ns: Netns, target: string): Promise<string> => {
  const child = spawn('nsenter', [`--net=${ns.path}`, 'ping', '-q', '-i', '0.01', '-c', '300', '-W', '5', target]);
  return text(child.stdout);
};
export const canPing = (ns: Netns, target: string): boolean => {
  try {
    within(ns, 'ping', '-c', '1', '-W', '1', target);
    return true;
  } catch {
    return false;
  }
};
