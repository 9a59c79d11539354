import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { NFT_GUARD_TABLE } from '@unbounded/config/ownership';
import { createNetns, createRouteSocket, type Netns } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import { createLogger, createMetrics } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { cleanUp } from '../cleanup.ts';
import { createPodRegistry, type PodAttachment } from '../cni/pods.ts';
import { startCniServer } from '../cni/server.ts';
import {
  EARLIER,
  GATEWAY,
  HONEST,
  type Host,
  HOSTILE,
  type Make,
  NEIGHBOR,
  POD,
  REMOTE,
  UNBRIDGED,
} from './attempts.testdata.ts';
import type { DeviceSpec } from '../kernel/devices.plan.ts';
import { ensureDevices } from '../kernel/devices.ts';
import { createBridgePorts } from './bridge-ports.ts';
import { arp, ethernet, ipv4, TYPE, udp } from './frames.testdata.ts';
import { createSourceGuard } from './source-guard.ts';

/**
 * A node's bridge with pods that send what they like, first as it was without a guard, then with it; pods come by the real CNI
 * plug-in (source-guard.kernel.spec.ts starts this in a network and a mount namespace of its own). Prints JSON.
 */

export interface Report {
  /** Of the hostile attempts without the guard: those that reached anybody, or taught the bridge a MAC. */
  readonly unguarded: readonly boolean[];
  readonly hostile: readonly boolean[];
  readonly honest: readonly boolean[];
  /** Dropped frames by reason after all of them, as the metric has it. */
  readonly dropped: Readonly<Record<string, number>>;
  readonly notes: readonly string[];
  /** Pings that others sent meanwhile and that were lost. */
  readonly lostPings: readonly string[];
  /** Whether a neighbor of the pod attached before, and the pod itself with another MAC, get through: with what is theirs, and with what is not. */
  readonly earlier: { readonly own: boolean; readonly stolen: boolean };
  readonly otherMac: { readonly during: boolean; readonly after: boolean };
  /** What CHECK said after each change by others, and after the next pass. */
  /** IPv4 and IPv6 of nobody from a port that is in no bridge: with the kernel's own settings of it, and after the next pass. */
  readonly unbridged: { readonly open: readonly boolean[]; readonly closed: readonly boolean[] };
  readonly drifts: Readonly<Record<string, { readonly changed: string; readonly repaired: string }>>;
  /** Lines of the log of a pass at rest, and of the first pass of a successor. */
  readonly secondWrote: readonly string[];
  readonly successorWrote: readonly string[];
  readonly addAfterFlush: { readonly code: number; readonly ports: number };
  readonly addWithoutPort: { readonly code: number; readonly error: number; readonly registered: number };
  readonly afterDel: readonly [ports: number, twice: number];
  readonly problems: readonly string[];
  readonly strangers: readonly (readonly string[])[];
  readonly tablesAfterCleanup: string;
}

const [SENDER, PLUGIN] = [process.argv[2]!, process.argv[3]!];
const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
const within = (ns: Netns, ...argv: string[]): string => run('nsenter', `--net=${ns.path}`, ...argv);
const net = createRouteSocket();

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

interface Network extends Disposable {
  readonly pod: Netns;
  readonly neighbor: Netns;
  readonly earlier: Netns;
  readonly remote: Netns;
}

/** As bridges are without our settings. */
const makePlainBridge = async (): Promise<void> => {
  run('ip', 'link', 'add', 'cbr0', 'address', GATEWAY.mac, 'type', 'bridge');
  run('ip', 'addr', 'add', `${GATEWAY.v4}/24`, 'dev', 'cbr0');
  run('ip', 'addr', 'add', `${GATEWAY.v6}/64`, 'dev', 'cbr0', 'nodad');
  run('ip', 'link', 'set', 'cbr0', 'up');
};
const makeBridge = async (): Promise<void> => {
  const addresses = [`${GATEWAY.v4}/24`, `${GATEWAY.v6}/64`];
  const spec: DeviceSpec = { name: 'cbr0', purpose: 'bridge', mtuBytes: 1500, arp: true, mac: GATEWAY.mac, addresses };
  const { problems } = await ensureDevices(net, [spec]);
  if (problems.length > 0) throw new Error(problems[0]!.message);
};

const makeNetwork = async (makeBridge: () => Promise<void>): Promise<Network> => {
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

/** Everything that comes in at a device of a namespace, in hexadecimal. */
const receive = async (argv: string[]): Promise<{ seen(marker: string): boolean; stop(): void }> => {
  const child: ChildProcess = spawn(argv[0]!, argv.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] });
  let seen = '';
  child.stdout!.setEncoding('latin1').on('data', (chunk: string) => (seen += chunk));
  await until('a receiver is ready', () => seen.startsWith('ready'));
  return { seen: (marker) => seen.includes(marker), stop: () => child.kill() };
};

/** Datagrams for the node itself, however they came. */
const listen = async (): Promise<Awaited<ReturnType<typeof receive>>> => {
  const socket = createSocket({ type: 'udp6', ipv6Only: false }).bind(7000, '::');
  let seen = '';
  socket.on('message', (message) => (seen += message.toString('hex')));
  await once(socket, 'listening');
  return { seen: (marker) => seen.includes(marker), stop: () => socket.close() };
};

const markerOf = (kind: number, index: number): Uint8Array =>
  Uint8Array.of(0xbe, 0xef, 0xfa, 0xce, 0xd0, kind, index, 0x5a);
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const send = (ns: Netns, frames: readonly Uint8Array[]): void =>
  void execFileSync('nsenter', [`--net=${ns.path}`, SENDER, 'send', 'eth0'], {
    input: frames.map((frame) => `${hex(frame)}\n`).join(''),
  });

/** The neighbor's own gratuitous ARP. */
const ANNOUNCEMENT = ethernet(
  { to: 'ff:ff:ff:ff:ff:ff', from: NEIGHBOR.mac },
  TYPE.arp,
  arp(1, [NEIGHBOR.mac, NEIGHBOR.v4], NEIGHBOR.v4),
);

const [PLAIN, LAST] = [1, 0xff];

/** Sends all of them, one by one, and says of each whether it was seen anywhere. */
const tryAll = async (
  network: Network,
  from: Netns,
  makes: readonly Make[],
  sentinels: readonly Make[],
  learned: (index: number) => boolean = () => false,
  by: Netns = from,
): Promise<boolean[]> => {
  const inside = [network.pod, network.neighbor, network.earlier, network.remote].filter((ns) => ns !== from);
  const receivers = await Promise.all([
    ...inside.map((ns) => receive(['nsenter', `--net=${ns.path}`, SENDER, 'receive', 'eth0'])),
    receive([SENDER, 'receive', 'cbr0']),
    listen(),
  ]);
  // What one attempt taught the bridge and the neighbors is not to hide the next.
  const restore = (): void => send(network.neighbor, [ANNOUNCEMENT]);
  const found = makes.map((make, index) => {
    restore();
    send(from, [make(markerOf(PLAIN, index))]);
    return learned(index);
  });
  restore();
  send(
    by,
    sentinels.map((make, index) => make(markerOf(LAST, index))),
  );
  // What is sent later arrives later: with these nothing is under way any more.
  for (const index of sentinels.keys())
    await until(`honest frame ${index} arrives`, () => receivers.some(({ seen }) => seen(hex(markerOf(LAST, index)))));
  const arrived = makes.map(
    (_, index) => found[index]! || receivers.some(({ seen }) => seen(hex(markerOf(PLAIN, index)))),
  );
  for (const receiver of receivers) receiver.stop();
  return arrived;
};

/** To the neighbor, to the node and to beyond. */
const sentinelsOf = ({ mac, v4 }: Host): Make[] =>
  [NEIGHBOR, GATEWAY, REMOTE].map((target) => (marker) => {
    const route = { from: v4, to: target.v4 };
    const via = target === REMOTE ? GATEWAY.mac : target.mac;
    return ethernet({ to: via, from: mac }, TYPE.ipv4, ipv4(route, 17, udp(route, marker)));
  });

/** The bridge believes that the neighbor's MAC is at the pod's port: only that is looked at where no port shows the frame. */
const isPoisoned = (index: number): boolean =>
  HOSTILE[index]!.isLearned === true &&
  new RegExp(`^${NEIGHBOR.mac} dev veth0 `, 'm').test(run('bridge', 'fdb', 'show', 'br', 'cbr0'));

const tryHostile = (network: Network): Promise<boolean[]> =>
  tryAll(
    network,
    network.pod,
    HOSTILE.map(({ make }) => make),
    sentinelsOf(POD),
    isPoisoned,
  );

const pings = (ns: Netns, target: string): Promise<string> => {
  const child = spawn('nsenter', [`--net=${ns.path}`, 'ping', '-q', '-i', '0.01', '-c', '300', '-W', '5', target]);
  return text(child.stdout!);
};
const canPing = (ns: Netns, target: string): boolean => {
  try {
    within(ns, 'ping', '-c', '1', '-W', '1', target);
    return true;
  } catch {
    return false;
  }
};

const folder = mkdtempSync(join(tmpdir(), 'guard-'));
const podsFile = join(folder, 'pods.json');
const lines: string[] = [];
const logger = createLogger({
  name: 'test',
  level: 'info',
  destination: { write: (line: string) => void lines.push(line) },
});
const taken = (): string[] => lines.splice(0).map((line) => (JSON.parse(line) as { msg: string }).msg);

const cni = async (socket: string, command: string, name: string, host?: Host & { readonly veth: string }) => {
  const interfaces = host && [
    { name: 'cbr0', mac: GATEWAY.mac },
    { name: host.veth, mac: '02:11:11:11:11:11' },
    { name: 'eth0', mac: host.mac, sandbox: `/run/netns/${name}` },
  ];
  const ips = host && [
    { address: `${host.v4}/24`, interface: 2 },
    { address: `${host.v6}/64`, interface: 2 },
  ];
  const config = {
    cniVersion: '1.0.0',
    name: 'unbounded',
    type: 'unbounded-cni',
    ...(host && { prevResult: { interfaces, ips } }),
  };
  const env = {
    UNBOUNDED_CNI_SOCKET: socket,
    CNI_COMMAND: command,
    CNI_CONTAINERID: name,
    CNI_IFNAME: 'eth0',
    CNI_NETNS: `/run/netns/${name}`,
    CNI_ARGS: `K8S_POD_NAMESPACE=default;K8S_POD_NAME=${name}`,
  };
  const child = spawn(PLUGIN, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise<number>((resolve) => child.once('exit', (code) => resolve(code ?? -1)));
  child.stdin!.end(JSON.stringify(config));
  const output = await text(child.stdout!);
  return { code: await ended, output };
};

const portsIn = (): number => {
  const listing = JSON.parse(run('nft', '-j', 'list', 'set', 'bridge', NFT_GUARD_TABLE, 'ports')) as {
    nftables: { set?: { elem?: unknown[] } }[];
  };
  return listing.nftables.find(({ set }) => set)!.set!.elem?.length ?? 0;
};

const DRIFTS: Readonly<Record<string, readonly string[]>> = {
  'the table is deleted': ['delete', 'table', 'bridge', NFT_GUARD_TABLE],
  'the ruleset is flushed': ['flush', 'ruleset'],
  'the pod’s MAC is deleted': ['delete', 'element', 'bridge', NFT_GUARD_TABLE, 'macs', `{ veth0 . ${POD.mac} }`],
  'the pod’s address is deleted': [
    'delete',
    'element',
    'bridge',
    NFT_GUARD_TABLE,
    'ipv4',
    `{ veth0 . ${POD.mac} . ${POD.v4} }`,
  ],
  'the pod’s port is deleted': ['delete', 'element', 'bridge', NFT_GUARD_TABLE, 'ports', '{ veth0 }'],
};

const main = async (): Promise<Report> => {
  run('ip', 'link', 'set', 'lo', 'up');
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
  writeFileSync('/proc/sys/net/ipv6/conf/all/forwarding', '1');
  // What the IP hooks would drop of themselves is to reach its target, too.
  for (const family of ['iptables', 'ip6tables', 'arptables']) {
    const setting = `/proc/sys/net/bridge/bridge-nf-call-${family}`;
    if (existsSync(setting)) writeFileSync(setting, '0');
  }
  const unguarded = await (async () => {
    using network = await makeNetwork(makePlainBridge);
    return await tryHostile(network);
  })();

  const network = await makeNetwork(makeBridge); // goes with the namespace
  const before: PodAttachment = {
    ...{ namespace: 'default', name: 'earlier', uid: '', containerId: 'earlier', netns: '/run/netns/earlier' },
    ...{ interface: 'eth0', hostVeth: 'veth2', addresses: [`${EARLIER.v4}/24`, `${EARLIER.v6}/64`] },
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(podsFile, JSON.stringify({ 'earlier/eth0': before }));
  const pods = createPodRegistry(podsFile);
  const metrics = createMetrics();
  await using nft = createNftables();
  const guard = createSourceGuard({ net, nft, pods, logger, metrics });
  const problems = [...(await guard.ensure())];
  const socket = join(folder, 'cni.sock');
  const gate = { isOpen: true };
  const server: Server = await startCniServer(socket, {
    pods: guard,
    gate,
    logger: createLogger({ name: 'test', level: 'error' }),
  });
  const add = (name: string, host: Host, veth: string) => cni(socket, 'ADD', name, { ...host, veth });
  for (const [name, host, veth] of [
    ['pod', POD, 'veth0'],
    ['neighbor', NEIGHBOR, 'veth1'],
  ] as const) {
    const { code, output } = await add(name, host, veth);
    if (code !== 0) throw new Error(`ADD of ${name}: ${output}`);
  }
  problems.push(...(await guard.ensure()));
  taken();
  await guard.ensure();
  const secondWrote = taken();

  const others = [
    [network.neighbor, [EARLIER, GATEWAY, REMOTE]],
    [network.earlier, [NEIGHBOR, REMOTE]],
  ] as const;
  // Link-local addresses are being tried out still, and the first packets ask for MACs.
  for (const [ns, targets] of others)
    for (const { v4, v6 } of targets) await until(`${v4} and ${v6} answer`, () => canPing(ns, v4) && canPing(ns, v6));
  const running = others.flatMap(([ns, targets]) => targets.flatMap(({ v4, v6 }) => [pings(ns, v4), pings(ns, v6)]));
  const hostile = await tryHostile(network);
  const lostPings = (await Promise.all(running)).filter((output) => !output.includes('300 received'));
  problems.push(...(await guard.ensure()));
  const notes = guard.takeNotes();
  const dropped = Object.fromEntries(
    [...(await metrics.render()).matchAll(/^unbounded_pod_frames_dropped_total\{reason="(\w+)"\} (\d+)/gm)].map(
      ([, reason, count]) => [reason!, Number(count)],
    ),
  );
  const honest = await tryAll(
    network,
    network.pod,
    HONEST.map(([, make]) => make),
    sentinelsOf(POD),
  );

  const [own, stolen] = await tryAll(
    network,
    network.earlier,
    [sentinelsOf(EARLIER)[0]!, sentinelsOf({ ...EARLIER, v4: POD.v4 })[0]!],
    sentinelsOf(EARLIER),
  );
  const setMac = (mac: string): string => within(network.pod, 'ip', 'link', 'set', 'eth0', 'address', mac);
  setMac('02:00:00:00:00:77');
  const during = canPing(network.pod, NEIGHBOR.v4) || canPing(network.pod, GATEWAY.v4);
  setMac(POD.mac);
  const after = canPing(network.pod, NEIGHBOR.v4) && canPing(network.pod, GATEWAY.v4);

  const portMac = (await net.links.get('veth0'))!.mac!;
  const tryUnbridged = async (): Promise<boolean[]> => {
    run('ip', 'link', 'set', 'veth0', 'nomaster');
    const arrived = await tryAll(
      network,
      network.pod,
      UNBRIDGED(portMac),
      sentinelsOf(EARLIER),
      undefined,
      network.earlier,
    );
    run('ip', 'link', 'set', 'veth0', 'master', 'cbr0');
    return arrived;
  };
  writeFileSync('/proc/sys/net/ipv4/conf/veth0/rp_filter', '0');
  writeFileSync('/proc/sys/net/ipv6/conf/veth0/disable_ipv6', '0');
  const open = await tryUnbridged();
  problems.push(...(await guard.ensure()));
  const closed = await tryUnbridged();

  const drifts: Record<string, { changed: string; repaired: string }> = {};
  for (const [what, command] of Object.entries(DRIFTS)) {
    run('nft', ...command);
    const changed = (await cni(socket, 'CHECK', 'pod')).output;
    problems.push(...(await guard.ensure()));
    drifts[what] = { changed, repaired: (await cni(socket, 'CHECK', 'pod')).output };
  }

  taken();
  const successorPods = createPodRegistry(podsFile);
  await createSourceGuard({ net, nft, pods: successorPods, logger, metrics: createMetrics() }).ensure();
  const successorWrote = taken();

  run('nft', 'flush', 'ruleset');
  const flushed = await add('pod', POD, 'veth0');
  const addAfterFlush = { code: flushed.code, ports: portsIn() };
  const refused = await add('nowhere', { ...POD, v4: '100.65.30.9' }, 'veth9');
  const addWithoutPort = {
    code: refused.code,
    error: (JSON.parse(refused.output) as { code: number }).code,
    registered: pods.list().length,
  };
  const counts: number[] = [];
  for (const code of [(await cni(socket, 'DEL', 'pod')).code, (await cni(socket, 'DEL', 'pod')).code])
    counts.push(code === 0 ? portsIn() : -1);

  let clock = 0;
  const bridgePorts = createBridgePorts(net, pods, () => clock);
  const strangers: string[][] = [];
  for (clock of [0, 9_999, 10_000]) strangers.push((await bridgePorts.find()).problems.map(({ message }) => message));

  server.close();
  const folders = {
    cniConfFolder: folder,
    cniBinFolder: folder,
    unitsFolder: folder,
    pinFolder: join(folder, 'a/b'),
    stateFolder: folder,
  };
  await cleanUp(folders, () => {});
  return {
    unguarded,
    hostile,
    honest,
    dropped,
    notes,
    lostPings,
    earlier: { own: own!, stolen: stolen! },
    otherMac: { during, after },
    unbridged: { open, closed },
    drifts,
    secondWrote,
    successorWrote,
    addAfterFlush,
    addWithoutPort,
    afterDel: [counts[0]!, counts[1]!],
    problems: problems.map(({ message }) => message),
    strangers,
    tablesAfterCleanup: run('nft', 'list', 'tables'),
  };
};

console.log(JSON.stringify(await main()));
net.close();
