import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { innerMac } from '@unbounded/bpf-maps';
import { CONNECTIVITY, PORTS, STATE_FOLDER } from '@unbounded/config/ownership';
import { createNetns, createRouteSocket, type Netns } from '@unbounded/netlink';
import { createLogger, createMetrics } from '@unbounded/telemetry';
import { findMember, parseWorld, planNode, type TopologyObjects } from '@unbounded/topology';
import type { KernelPlan } from '../kernel-plan.ts';
import { renderPlan } from '../render.ts';
import { peerDevice } from '../devices.ts';
import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';
import { applyPlan, type Dataplane } from '../../connectivity/dataplane.ts';
import { startHealth } from '../../connectivity/health/health.ts';
import { noPaths } from '../../connectivity/paths/paths.testdata.ts';
import { createSysctls } from '../../kernel/sysctls.ts';
import { planFirewall } from '../../connectivity/kernel/firewall.plan.ts';
import { tableSpec } from '../../kernel/section-table.ts';
import { watchDrops } from '../../kernel/dropped-packets.testdata.ts';
import { COUNTERS } from '../../connectivity/kernel/firewall-parts.ts';
import { openNetlinkPath } from './netlink-path.ts';
import { datagram, geneve, vxlan } from './packets.testdata.ts';
import { openFirewall } from '../../connectivity/kernel/firewall.testdata.ts';
import { printReport } from '../../printed-report.testdata.ts';

/**
 * The worker w1 under the netlink data path, and peers on its LAN that send it what they like (senders.kernel.spec.ts
 * starts this in a network of its own). The last line printed is JSON.
 */

type Peer = 'x1' | 'g1' | 'g9' | 'stranger';
type Shape = 'plain' | 'fragmented' | 'an option' | 'another VNI' | 'ARP' | 'the wrong type';

/** One packet to w1. */
export interface Shot {
  readonly protocol: 'VXLAN' | 'GENEVE' | 'IPIP';
  readonly underlay: 4 | 6;
  readonly from: Peer;
  readonly source: string;
  readonly shape?: Shape;
}

/**
 * arrived: at the socket it was for. passed: beyond our table, to where a device would take it. dropped: counted as
 * forged.
 */
type Outcome = 'arrived' | 'passed' | 'dropped' | 'neither';

export interface Report {
  readonly problems: readonly string[];
  readonly outcomes: readonly Outcome[];
  /** Protocols for which this kernel has devices: their packets can arrive. */
  readonly delivering: readonly Shot['protocol'][];
  /** Bytes that a peer's own VXLAN device brought by TCP, and answers to pings that are larger than the underlay's MTU. */
  readonly bulkBytes: number;
  readonly largePings: number;
  /** Packets that w1 sent to a peer: from the address by which it is known, and from others. */
  readonly outerSources: Readonly<Record<string, { readonly own: number; readonly other: number }>>;
  /** What the real nft says of the chains and sets. */
  readonly listing: string;
  /** Lines of the log of a second pass: nothing is written again. */
  readonly secondWrote: readonly string[];
}

const HOSTS: Readonly<Record<Peer | 'w1', number>> = { w1: 30, x1: 31, g1: 20, g9: 29, stranger: 99 };
const underlayOf = (name: Peer | 'w1', family: 4 | 6): string =>
  family === 4 ? `10.1.0.${HOSTS[name]}` : `fd00:1::${HOSTS[name]}`;
const API = { apiVersion: 'net.unbounded-cloud.io/v1alpha1' } as const;
const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
const within = (peer: Netns, ...argv: string[]): string => run('nsenter', `--net=${peer.path}`, ...argv);

/** Blocks of both families; under IPIP, which carries IPv4 alone, the first. */
const blocks = (protocol: Shot['protocol'], v4: string, v6: string): string[] =>
  protocol === 'IPIP' ? [v4] : [v4, v6];

const member = (name: Peer | 'w1', family: 4 | 6, protocol: Shot['protocol']) => ({
  name,
  wireGuardPublicKey: publicKeyOf(generatePrivateKey()),
  internalIPs: [underlayOf(name, family)],
  podCIDRs: blocks(protocol, `100.65.${HOSTS[name]}.0/24`, `fd64:65:${HOSTS[name]}::/64`),
  tunnelProtocols: ['GENEVE', 'IPIP', 'VXLAN'],
});

const objectsFor = ({ protocol, underlay }: Shot): TopologyObjects => {
  const object = (kind: string, name: string, rest: object): object => ({ ...API, kind, metadata: { name }, ...rest });
  const site = (index: number, pods: string[]): object =>
    object('Site', `s${index}`, {
      spec: {
        nodeCidrs: underlay === 4 ? [`10.${index}.0.0/24`] : [`fd00:${index}::/64`],
        podCidrAssignments: [{ cidrBlocks: pods }],
        tunnelProtocol: protocol,
      },
    });
  const gateways = (['g1', 'g9'] as const).map((name, index) => ({
    ...member(name, underlay, protocol),
    siteName: 's1',
    externalIPs: [`203.0.113.${HOSTS[name]}`],
    gatewayWireguardPort: 51_821 + index,
  }));
  const far = {
    ...gateways[0]!,
    name: 'far',
    siteName: 's2',
    internalIPs: ['10.2.0.20'],
    podCIDRs: blocks(protocol, '100.66.20.0/24', 'fd64:66:20::/64'),
    gatewayWireguardPort: 51_830,
  };
  const pool = (name: string, nodes: object[], routedCidrs: string[]): object =>
    object('GatewayPool', name, { spec: { type: 'External', nodeSelector: { name }, routedCidrs }, status: { nodes } });
  return {
    sites: [
      site(1, blocks(protocol, '100.65.0.0/16', 'fd64:65::/32')),
      site(2, blocks(protocol, '100.66.0.0/16', 'fd64:66::/32')),
    ],
    slices: [
      object('SiteNodeSlice', 's1-0', {
        siteName: 's1',
        sliceIndex: 0,
        nodes: (['w1', 'x1'] as const).map((name) => member(name, underlay, protocol)),
      }),
    ],
    gatewayPools: [
      pool('p1', gateways, []),
      pool('p2', [{ ...far, wireGuardPublicKey: publicKeyOf(generatePrivateKey()) }], ['100.64.0.0/10']),
    ],
    sitePeerings: [],
    assignments: [1, 2].map((index) =>
      object('SiteGatewayPoolAssignment', `a${index}`, { spec: { sites: [`s${index}`], gatewayPools: [`p${index}`] } }),
    ),
    meshes: [],
    poolPeerings: [object('GatewayPoolPeering', 'wan', { spec: { gatewayPools: ['p1', 'p2'] } })],
  } as unknown as TopologyObjects;
};

/** Without probes, which nobody would answer: a route to gateways that are away leads nowhere. */
const planFor = (shot: Shot): KernelPlan => {
  const world = parseWorld(objectsFor(shot));
  const plan = planNode(world, { member: findMember(world, 'w1')!, underlayMtuBytes: 1500 });
  return { ...renderPlan('netlink', plan), probes: [] };
};

/** The LAN is a bridge of w1's own, with a wire to each peer. */
const makeLan = (): Record<Peer, Netns> => {
  run('ip', 'link', 'set', 'lo', 'up');
  run('ip', 'link', 'add', 'eth0', 'type', 'bridge', 'mcast_snooping', '0');
  // The kernel would send from the first IPv4 address, and from the last IPv6 one.
  run('ip', 'addr', 'add', '10.1.0.199/24', 'dev', 'eth0');
  for (const family of [4, 6] as const)
    run('ip', 'addr', 'add', `${underlayOf('w1', family)}/${family === 4 ? 24 : 64}`, 'dev', 'eth0', ...nodad(family));
  run('ip', 'addr', 'add', 'fd00:1::199/64', 'dev', 'eth0', 'nodad');
  run('ip', 'link', 'set', 'eth0', 'up');
  const join = (name: Peer): Netns => {
    const ns = createNetns();
    run('ip', 'link', 'add', `to-${name}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', ns.path);
    run('ip', 'link', 'set', `to-${name}`, 'master', 'eth0', 'up');
    for (const device of ['lo', 'eth0']) within(ns, 'ip', 'link', 'set', device, 'up');
    for (const family of [4, 6] as const)
      within(
        ns,
        ...['ip', 'addr', 'add', `${underlayOf(name, family)}/${family === 4 ? 24 : 64}`, 'dev', 'eth0'],
        ...nodad(family),
      );
    return ns;
  };
  return { x1: join('x1'), g1: join('g1'), g9: join('g9'), stranger: join('stranger') };
};
const nodad = (family: 4 | 6): string[] => (family === 4 ? [] : ['nodad']);

const OVERLAY = { 4: '100.65.30.1', 6: 'fd64:65:30::1' } as const;

const payloadOf = (shot: Shot, name: string): Uint8Array => {
  const { source, shape = 'plain', protocol, underlay } = shot;
  const message = new TextEncoder().encode(name.padEnd(shape === 'fragmented' ? 3000 : 0));
  const packet = datagram(source, OVERLAY[source.includes(':') ? 6 : 4], message);
  const inner = { mac: innerMac(underlayOf('w1', underlay)) };
  if (protocol === 'IPIP') return packet;
  if (shape === 'ARP') return vxlan(packet, { ...inner, etherType: 0x0806 });
  if (shape === 'the wrong type') return vxlan(packet, { ...inner, etherType: source.includes(':') ? 0x0800 : 0x86dd });
  if (protocol === 'VXLAN') return vxlan(packet, inner);
  return geneve(packet, inner, shape === 'an option' ? new Uint8Array(8) : undefined, shape === 'another VNI' ? 7 : 1);
};

/** The kernel makes the outer header, and fragments. */
const SEND = `use Socket qw(:all);
my ($protocol, $to, $port, $bytes) = @ARGV;
my ($problem, $at) = getaddrinfo($to, $port, { flags => AI_NUMERICHOST, socktype => SOCK_DGRAM });
die $problem if $problem;
socket(my $socket, $at->{family}, $protocol == 17 ? SOCK_DGRAM : SOCK_RAW, $protocol) or die $!;
send($socket, pack("H*", $bytes), 0, $at->{addr}) or die $!;`;

const send = (from: Netns, shot: Shot, name: string): void => {
  const hex = Buffer.from(payloadOf(shot, name)).toString('hex');
  const [protocol, port] =
    shot.protocol === 'IPIP' ? ['4', '0'] : ['17', String(shot.protocol === 'VXLAN' ? PORTS.vxlan : PORTS.geneve)];
  within(from, 'perl', '-e', SEND, protocol, underlayOf('w1', shot.underlay), port, hex);
};

const countersOf = (listing: string): number =>
  [...listing.matchAll(/counter packets (\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);

/** What a table behind ours sees of the tunnels. */
const passed = (): number => countersOf(run('nft', 'list', 'table', 'inet', 'behind'));

const watchBehind = (): void => {
  run('nft', 'add', 'table', 'inet', 'behind');
  run('nft', 'add', 'chain', 'inet', 'behind', 'input', '{ type filter hook input priority 0; }');
  for (const match of [`udp dport ${PORTS.vxlan}`, `udp dport ${PORTS.geneve}`, 'ip protocol 4'])
    run('nft', 'add', 'rule', 'inet', 'behind', 'input', ...match.split(' '), 'counter');
};

const openDataplane = (log: string[]): Dataplane => {
  const logger = createLogger({ name: 'test', destination: { write: (line) => void log.push(line) } });
  const net = createRouteSocket();
  const privateKey = generatePrivateKey();
  return {
    net,
    ...openFirewall(logger),
    path: openNetlinkPath(net, { indexFile: join(STATE_FOLDER, 'groups.json'), pinFolder: '/run/unbounded/v1' }),
    health: startHealth({
      keys: { current: privateKey },
      port: PORTS.health,
      groups: 'routes',
      stateFile: join(STATE_FOLDER, 'health.json'),
      logger,
      metrics: createMetrics(),
      onChange: () => undefined,
    }),
    paths: noPaths(),
    sysctls: createSysctls(join(STATE_FOLDER, 'sysctls.json')),
    wireGuard: { keyOf: () => ({ privateKey, file: '' }), unitsDir: '/run/unbounded/keeper/units' },
    relayWays: () => [],
    pods: () => [],
    logger,
  };
};

const listen = async (): Promise<Set<string>> => {
  const seen = new Set<string>();
  const socket = createSocket('udp6').on('message', (message, { address }) => {
    seen.add(`${message.toString().trimEnd()} from ${address.replace('::ffff:', '')}`);
  });
  await new Promise<void>((resolve) => void socket.bind(7000, resolve));
  return seen;
};

const BULK_BYTES = 8 << 20;
const BULK = `use IO::Socket::INET;
my $socket = IO::Socket::INET->new(PeerAddr => "100.65.30.1", PeerPort => 7001, Timeout => 10) or die $!;
print $socket "x" x 65536 for 1 .. ${BULK_BYTES / 65536};`;

/** Bytes that arrive by TCP from the peer's pod address. */
const receiveBulk = async (x1: Netns): Promise<number> => {
  let bytes = 0;
  const ended = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    socket.on('data', (data) => void (bytes += data.length)).on('close', () => ended.resolve());
  });
  await new Promise<void>((resolve) => void server.listen(7001, '100.65.30.1', resolve));
  const sender = spawn('nsenter', [`--net=${x1.path}`, 'perl', '-e', BULK], { stdio: 'inherit' });
  sender.once('exit', (status) => status !== 0 && ended.resolve()); // fewer bytes say so
  await ended.promise;
  server.close();
  return bytes;
};

/** x1 with a VXLAN device of its kernel: segments of 64 KB by TCP, and pings whose outer packets are fragments. */
const useRealDevice = async (x1: Netns): Promise<Pick<Report, 'bulkBytes' | 'largePings'>> => {
  const inPeer = (command: string): string => within(x1, ...command.split(' '));
  const [w1, own] = [underlayOf('w1', 4), underlayOf('x1', 4)];
  inPeer(`ip link add vxlan0 address ${innerMac(own)} mtu 3000 type vxlan id 1 remote ${w1} dstport ${PORTS.vxlan}`);
  inPeer('ip addr add 100.65.31.1/32 dev vxlan0');
  inPeer('ip link set vxlan0 up');
  inPeer('ip route add 100.65.30.0/24 dev vxlan0');
  inPeer(`ip neigh add 100.65.30.1 dev vxlan0 lladdr ${innerMac(w1)}`);
  const pinged = inPeer('ping -q -c3 -i0.1 -W2 -s2500 100.65.30.1');
  inPeer('ip link set vxlan0 mtu 1442');
  return { bulkBytes: await receiveBulk(x1), largePings: Number(/(\d+) received/.exec(pinged)?.[1] ?? 0) };
};

/** What arrives at the peer of the kinds of tunnels, by its source. */
const watchSources = (x1: Netns): void => {
  const rules = ([4, 6] as const).flatMap((family) => {
    const field = family === 4 ? 'ip saddr' : 'ip6 saddr';
    const isFamily = `meta nfproto ipv${family}`;
    return [
      ['vxlan', 'udp dport 4789'],
      ['geneve', 'udp dport 6081'],
      ...(family === 4 ? [['ipip', 'ip protocol 4']] : []),
    ].flatMap(([kind, match]) => [
      `${isFamily} ${match} ${field} ${underlayOf('w1', family)} counter name own_${kind}${family}`,
      `${isFamily} ${match} ${field} != ${underlayOf('w1', family)} counter name other_${kind}${family}`,
    ]);
  });
  const counters = rules.map((rule) => `counter ${rule.split(' ').at(-1)} { }`);
  const chain = `chain c {\ntype filter hook prerouting priority -300;\n${rules.join('\n')}\n}`;
  execFileSync('nsenter', [`--net=${x1.path}`, 'nft', '-f', '-'], {
    input: `table inet sources {\n${counters.join('\n')}\n${chain}\n}\n`,
  });
};

const sentFrom = (x1: Netns, what: string): { own: number; other: number } => {
  const packets = (counter: string): number =>
    countersOf(
      within(x1, 'nft', 'list', 'counter', 'inet', 'sources', counter)
        .replaceAll(/\s+/g, ' ')
        .replace('{ packets', 'counter packets'),
    );
  return { own: packets(`own_${what}`), other: packets(`other_${what}`) };
};

/** By the devices that this kernel has; a packet like GENEVE's takes the way of its packets also where it has none. */
const findOuterSources = async (dataplane: Dataplane, x1: Netns): Promise<Report['outerSources']> => {
  watchSources(x1);
  const found: Record<string, { own: number; other: number }> = {};
  for (const underlay of [4, 6] as const) {
    const shot = { underlay, from: 'x1', source: '' } as const;
    await applyPlan(dataplane, planFor({ ...shot, protocol: 'VXLAN' }));
    spawnSync('ping', ['-c1', '-W1', '100.65.31.1']);
    found[`vxlan${underlay}`] = sentFrom(x1, `vxlan${underlay}`);
    const kind = `geneve${underlay}`;
    await dataplane.nft.replaceTable(tableSpec(CONNECTIVITY, planFirewall(planFor({ ...shot, protocol: 'GENEVE' }))));
    run('perl', '-e', SEND, '17', underlayOf('x1', underlay), String(PORTS.geneve), '00'.repeat(64));
    found[kind] = sentFrom(x1, kind);
    const ipip = underlay === 4 ? await applyPlan(dataplane, planFor({ ...shot, protocol: 'IPIP' })) : undefined;
    if (!ipip?.devices.has(peerDevice('IPIP', underlayOf('x1', 4)))) continue; // this kernel has none
    spawnSync('ping', ['-c1', '-W1', '100.65.31.1']);
    found['ipip4'] = sentFrom(x1, 'ipip4');
  }
  return found;
};

const LATE_MS = 5000;
const POLL_MS = 10;

/** What is found within some seconds; a machine may be emulated. */
const soon = async <T>(look: () => Promise<T | undefined>): Promise<T | undefined> => {
  const end = performance.now() + LATE_MS;
  let found = await look();
  while (found === undefined && performance.now() < end) {
    await sleep(POLL_MS);
    found = await look();
  }
  return found;
};

const main = async (): Promise<Report> => {
  const shots = JSON.parse(await text(process.stdin)) as Shot[];
  const peers = makeLan();
  watchBehind();
  const log: string[] = [];
  const dataplane = openDataplane(log);
  const seen = await listen();
  const problems: string[] = [];
  const delivering = new Set<Shot['protocol']>();
  let ready = '';
  const prepare = async (shot: Shot): Promise<void> => {
    const plan = planFor(shot);
    const found = (await applyPlan(dataplane, plan)).problems.map(({ message }) => message);
    if (found.some((message) => message.includes('the kernel has no'))) {
      await dataplane.nft.replaceTable(tableSpec(CONNECTIVITY, planFirewall(plan))); // as if it had
      return;
    }
    delivering.add(shot.protocol);
    problems.push(...found);
  };
  const drops = watchDrops(dataplane.nft, { drops: [COUNTERS.forgedInnerSource] });
  const forged = (): Promise<number> => drops.of(COUNTERS.forgedInnerSource); // as the agent's metric has it
  const outcomes: Outcome[] = [];
  for (const [index, shot] of shots.entries()) {
    const wanted = `${shot.protocol} ${shot.underlay}`;
    if (ready !== wanted) await prepare(shot);
    ready = wanted;
    const name = `shot ${index}`;
    const before = { forged: await forged(), passed: passed() };
    send(peers[shot.from], shot, name);
    const hasPassed = (): boolean => passed() > before.passed;
    const outcome = async (): Promise<Outcome | undefined> => {
      if ((await forged()) > before.forged) return 'dropped';
      if (seen.has(`${name} from ${shot.source}`)) return 'arrived';
      return !delivering.has(shot.protocol) && hasPassed() ? 'passed' : undefined;
    };
    const late = (): Outcome => (hasPassed() ? 'passed' : 'neither');
    outcomes.push((await soon(outcome)) ?? late());
  }
  const first = shots.find(({ protocol }) => protocol === 'VXLAN')!;
  await applyPlan(dataplane, planFor(first));
  const logged = log.length;
  await applyPlan(dataplane, planFor(first));
  const secondWrote = log.slice(logged);
  const listing = run('nft', 'list', 'table', 'inet', 'unbounded');
  const bulk = await useRealDevice(peers.x1);
  const outerSources = await findOuterSources(dataplane, peers.x1);
  return { problems, outcomes, delivering: [...delivering], ...bulk, outerSources, listing, secondWrote };
};

await printReport(await main());
process.exit(0);
