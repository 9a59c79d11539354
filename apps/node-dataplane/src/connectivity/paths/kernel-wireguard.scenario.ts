import { execFileSync } from 'node:child_process';
import { createNetns, createRouteSocket, type Netns } from '@unbounded/netlink';
import { generatePrivateKey, openKernelDevice, publicKeyOf } from '@unbounded/wireguard';
import type { PathReport } from './messages.ts';
import { createWatcher, type Watcher } from './watcher.ts';

/**
 * Two nodes on one wire with the kernel's WireGuard, where proxies of a relay are said to be: the paths go direct, and back when
 * one direction is cut. Prints what it saw as JSON: paths.vm.spec.ts runs it on a kernel that has WireGuard.
 */

export interface Seen {
  /** Of each end: what its moves were for. */
  readonly moves: readonly (readonly string[])[];
  /** What the kernel has as the peers' endpoints: at first, on direct, and on the relay. */
  readonly endpoints: readonly (readonly string[])[];
  /** Packets that were answered through the tunnel while it was direct. */
  readonly answered: number;
  /** From the cut until both ends were on the relay. */
  readonly backMs: number;
}

const [DEVICE, PORT, POLL_MS, DEADLINE_MS] = ['wg51820', 51_820, 20, 60_000];
const keys = [generatePrivateKey(), generatePrivateKey()];

interface Node {
  readonly netns: Netns;
  readonly reports: PathReport[];
  readonly watcher: Watcher;
}

const run = ({ netns }: { readonly netns: Netns }, ...argv: string[]): string =>
  execFileSync('nsenter', [`--net=${netns.path}`, ...argv], { encoding: 'utf8' });

const until = async (what: string, isSo: () => boolean): Promise<void> => {
  const end = performance.now() + DEADLINE_MS;
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`not within ${DEADLINE_MS} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
};

const proxyOf = (index: number): string => `127.0.0.1:${40_000 + index}`;
const peerOf = (index: number) => ({
  node: `n${1 - index}`,
  publicKey: publicKeyOf(keys[1 - index]!),
  direct: `10.9.0.${2 - index}:${PORT}`,
  proxy: proxyOf(index),
});

const makeNode = async (index: number): Promise<Node> => {
  const netns = createNetns();
  await using net = createRouteSocket({ netnsFd: netns.fd });
  await net.links.create({ name: DEVICE, kind: { kind: 'wireguard' }, mtu: 1420 });
  await using device = openKernelDevice(DEVICE, { netnsFd: netns.fd });
  const { publicKey, proxy } = peerOf(index);
  const allowedIps = [`10.10.0.${2 - index}/32`];
  await device.apply({
    privateKey: keys[index]!,
    listenPort: PORT,
    peers: [{ op: 'add', publicKey, endpoint: proxy, allowedIps }],
  });
  const reports: PathReport[] = [];
  const watcher = createWatcher({
    netnsFd: netns.fd,
    nonceFile: '/proc/self/none', // nothing is kept
    onMoved: (report) => reports.push(report),
    onGone: () => undefined,
  });
  return { netns, reports, watcher };
};

const join = ([a, b]: readonly Node[]): void => {
  run(a!, 'ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', b!.netns.path);
  for (const [index, node] of [a!, b!].entries()) {
    run(node, 'ip', 'addr', 'add', `10.9.0.${index + 1}/24`, 'dev', 'eth0');
    run(node, 'ip', 'addr', 'add', `10.10.0.${index + 1}/24`, 'dev', DEVICE);
    for (const link of ['lo', 'eth0', DEVICE]) run(node, 'ip', 'link', 'set', link, 'up');
  }
};

const nodes = [await makeNode(0), await makeNode(1)];
join(nodes);
const endpoints = (): string[] =>
  nodes.map((node) => run(node, 'wg', 'show', DEVICE, 'endpoints').trim().split(/\s+/)[1] ?? 'none');
const areAll = (path: string) => (): boolean => nodes.every(({ reports }) => reports.at(-1)?.path === path);

const seen: string[][] = [endpoints()];
for (const [index, { watcher }] of nodes.entries()) {
  const peers = [{ ...peerOf(index), mode: 'auto' as const, intervalMs: 500, detectMultiplier: 3 }];
  const device = { name: DEVICE, listenPort: PORT, isUserspace: false, privateKey: keys[index]!, peers };
  await watcher.apply({ devices: [device], isRelayUp: true });
}
await until('both are direct', areAll('direct'));
await until('the kernel has it', () => endpoints().every((endpoint) => endpoint.startsWith('10.9.')));
seen.push(endpoints());
const ping = run(nodes[0]!, 'ping', '-q', '-c', '20', '-i', '0.05', '-w', '20', '10.10.0.2');

run(nodes[0]!, 'nft', 'add table inet t; add chain inet t out { type filter hook output priority 0; }');
run(nodes[0]!, 'nft', 'add rule inet t out oifname eth0 meta l4proto udp drop');
const cutMs = performance.now();
await until('both are on the relay', areAll('relay'));
const backMs = Math.round(performance.now() - cutMs);
await until('the kernel has it', () => endpoints().every((endpoint) => endpoint.startsWith('127.')));
seen.push(endpoints());
for (const { watcher } of nodes) await watcher.stop();

const result: Seen = {
  moves: nodes.map(({ reports }) => reports.map(({ path, reason }) => `${path} ${reason}`)),
  endpoints: seen,
  answered: Number(/(\d+) (packets )?received/.exec(ping)?.[1]),
  backMs,
};
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);
