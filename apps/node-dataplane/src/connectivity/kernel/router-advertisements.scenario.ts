/**
 * A node with a default route from router advertisements turns IPv6 forwarding on. Runs in network and mount namespaces of its
 * own, with the sender's path as argument; prints what was seen as JSON. The router and a pod are in namespaces beside it.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createNetns, createRouteSocket, type Netns } from '@unbounded/netlink';
import type { DeviceSpec } from './devices.plan.ts';
import { ensureDevices } from './devices.ts';
import { advertisementDevices } from './router-advertisements.ts';
import { createSysctls } from '../../kernel/sysctls.ts';

export interface Report {
  readonly problems: readonly string[];
  readonly before: readonly string[];
  /** Default routes and accept_ra of eth0, once forwarding is on; after an hour's less lifetime was told; after restoring. */
  readonly forwarding: { readonly value: string; readonly routes: readonly string[]; readonly acceptRa: string };
  readonly refreshedSeconds: number;
  readonly restored: { readonly value: string; readonly acceptRa: string; readonly routes: readonly string[] };
  /** Default routes after a pod's advertisement, and accept_ra of our devices. */
  readonly afterPod: { readonly routes: readonly string[]; readonly acceptRa: readonly string[] };
}

const sender = process.argv[2]!;
const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
const inside = (netns: Netns, ...argv: string[]): string => run('nsenter', `--net=${netns.path}`, ...argv);
const conf = (device: string, key: string): string => `/proc/sys/net/ipv6/conf/${device}/${key}`;
const read = (path: string): string => readFileSync(path, 'utf8').trim();

interface Shown {
  readonly dev: string;
  readonly protocol: string;
  readonly expires?: number;
}
const defaults = (): Shown[] => JSON.parse(run('ip', '-6', '-j', 'route', 'show', 'default') || '[]') as Shown[];
const routes = (): string[] => defaults().map(({ dev, protocol }) => `${dev} ${protocol}`);

const until = async (what: string, isSo: () => boolean): Promise<void> => {
  for (const end = performance.now() + 45_000; !isSo();) {
    if (performance.now() > end) throw new Error(`not so: ${what}: ${run('ip', '-6', 'route')} ${run('ip', 'addr')}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};
const wire = async (netns: Netns, device: string): Promise<void> => {
  run('ip', 'link', 'add', device, 'type', 'veth', 'peer', 'name', 'peer', 'netns', netns.path);
  inside(netns, 'sh', '-c', 'echo 0 > /proc/sys/net/ipv6/conf/peer/accept_dad');
  writeFileSync(conf(device, 'accept_dad'), '0');
  run('ip', 'link', 'set', device, 'up');
  inside(netns, 'ip', 'link', 'set', 'peer', 'up');
  await until('link-local', () => {
    const shown = inside(netns, 'ip', '-6', 'addr', 'show', 'peer', 'scope', 'link');
    return shown.includes('fe80') && !shown.includes('tentative');
  });
};
/** A network namespace has a /proc/sys/net of its own in each process of it, so a sender works where it is entered. */
const advertise = (netns: Netns, seconds: number): void => void inside(netns, sender, 'peer', String(seconds));

const main = async (): Promise<Report> => {
  await using stack = new AsyncDisposableStack();
  const router = stack.use(createNetns());
  const pod = stack.use(createNetns());
  const net = stack.use(createRouteSocket());
  run('ip', 'link', 'set', 'lo', 'up');
  writeFileSync(conf('default', 'accept_ra'), '1');
  await wire(router, 'eth0');
  writeFileSync(conf('eth0', 'accept_ra'), '1');
  advertise(router, 1800);
  await until('the default route is learned', () => routes().length === 1);
  const before = routes();
  const record = join(mkdtempSync(join(tmpdir(), 'ra-')), 'sysctls.json');
  const sysctls = createSysctls(record);
  const problems = await sysctls.ensure({ v4: false, v6: true }, () => advertisementDevices(net));
  const state = () => ({
    value: read(conf('all', 'forwarding')),
    acceptRa: read(conf('eth0', 'accept_ra')),
    routes: routes(),
  });
  const forwarding = state();
  advertise(router, 9000);
  // Without the route the tests say so.
  if (routes().length > 0) await until('the route is refreshed', () => (defaults()[0]?.expires ?? 0) > 1800);
  const refreshedSeconds = defaults()[0]?.expires ?? 0;

  writeFileSync(conf('default', 'accept_ra'), '2'); // some distributions do
  const bridge: DeviceSpec = {
    name: 'cbr0',
    purpose: 'bridge',
    mtuBytes: 1442,
    arp: true,
    addresses: ['fd64:1::1/64'],
  };
  const vxlan: DeviceSpec = {
    name: 'vxlan0',
    purpose: 'vxlan',
    mtuBytes: 1442,
    arp: false,
    addresses: ['fd64:1::1/128'],
  };
  const devices = await ensureDevices(net, [bridge, vxlan]);
  await wire(pod, 'pod0');
  writeFileSync(conf('pod0', 'accept_ra'), '0');
  run('ip', 'link', 'set', 'pod0', 'master', 'cbr0');
  await until('the bridge has its address', () =>
    run('ip', '-6', 'addr', 'show', 'cbr0', 'scope', 'link').includes('fe80'),
  );
  const received = (): number =>
    Number(/^Icmp6InRouterAdvertisements\s+(\d+)/m.exec(readFileSync('/proc/self/net/snmp6', 'utf8'))![1]);
  const had = received();
  advertise(pod, 1800);
  await until('the pod’s advertisement has come', () => received() > had);
  const afterPod = { routes: routes(), acceptRa: ['cbr0', 'vxlan0'].map((name) => read(conf(name, 'accept_ra'))) };
  run('ip', 'link', 'del', 'cbr0');
  createSysctls(record).restore();
  const restored = state();
  return {
    problems: [...problems, ...devices.problems].map(({ message }) => message),
    before,
    forwarding,
    refreshedSeconds,
    restored,
    afterPod,
  };
};

process.stdout.write(JSON.stringify(await main()));
