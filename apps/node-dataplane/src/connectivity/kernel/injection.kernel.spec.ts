import { CONNECTIVITY } from '@unbounded/config/ownership';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { endpointV4, innerMac, lpmKeyV4 } from '@unbounded/bpf-maps';
import { attachProgram, loadObject } from '@unbounded/libbpf-ts';
import { createNetns, createRouteSocket, type Netns } from '@unbounded/netlink';
import { createNftables, type Nftables } from '@unbounded/nftables';
import { type PerlServer, startPerl } from '@unbounded/testing/perl-server';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { datagram, geneve, vxlan } from '../../data-path/netlink/packets.testdata.ts';
import { planFor } from '../../testdata.ts';
import { planFirewall } from './firewall.plan.ts';
import { watchDrops } from '../../kernel/dropped-packets.testdata.ts';
import { applyNetworkLines, learnNeighbors, type NetworkLine } from '../../kernel/network-lines.testdata.ts';
import { tableSpec } from '../../kernel/section-table.ts';

/**
 * The gateway g1 with our table, a pod of its own behind `cbr0`, a pod of another site behind `wg51822` (a veth here: what
 * is decrypted), and the node x1 on its LAN, which takes VXLAN by the real program.
 */

type Place = 'pod' | 'far';
type Namespace = Place | 'node' | 'peer';

const ADDRESSES = {
  node: ['10.1.0.20', 'fd00:1::20'],
  peer: ['10.1.0.31', 'fd00:1::31'],
  pod: ['100.65.20.9', 'fd64:65:20::9'],
  far: ['100.66.20.9', 'fd64:66:20::9'],
} as const;
const EXTERNAL = ['203.0.113.1', '2001:db8:113::1'] as const; // of a gateway; behind the LAN here
const INTERNET = ['198.51.100.9', '2001:db8:51::9'] as const;
/** Of a node, which is behind a NAT or has more than one, and of nobody's list. */
const UNLISTED = ['203.0.113.77', '2001:db8:113::77'] as const;
/** To which an administrator lets pods have tunnels. */
const ALLOWED = ['198.51.100.99', '2001:db8:51::99'] as const;
const PEER_POD = '100.65.31.7';

const plan: KernelPlan = (() => {
  // What another site sends to nodes goes by the LAN here, as where they have no tunnel.
  const { transitRoutes: _, ...own } = planFor('g1', 'WireGuard');
  const { sources, exceptTo } = own.masquerade;
  const pods = ['fd64:65::/32', 'fd64:66::/32'];
  const { addresses, wireGuardPorts } = own.tunnelEnds;
  const { exits } = own.boundary;
  return {
    ...own,
    masquerade: { sources: [...sources, ...pods], exceptTo: [...exceptTo, ...pods] },
    tunnelEnds: {
      addresses: [...addresses, 'fd00:1::/64', `${EXTERNAL[1]}/128`],
      wireGuardPorts,
      allowed: ALLOWED.map((address) => `${address}/${address.includes(':') ? 128 : 32}`),
    },
    // Whatever leaves: tunnel packets are not to depend on it.
    boundary: {
      ...own.boundary,
      exits: [...exits, 'fd00:1::/64', '203.0.113.0/24', '198.51.100.0/24', '2001:db8::/32'],
    },
  };
})();

let ns: Record<Namespace, Netns>;
let nfts: Record<Namespace, Nftables>;
const closing: (() => void)[] = [];

type Line = NetworkLine<Namespace>;
const wire = (a: Namespace, nameA: string, b: Namespace, nameB: string): Line => [
  a,
  `link add ${nameA} type veth peer name ${nameB} netns ${b}`,
];
const addAll = (name: Namespace, device: string, addresses: readonly string[]): Line[] =>
  addresses.map((address) => [
    name,
    `addr add ${address}/${address.includes(':') ? 64 : 24} dev ${device}${address.includes(':') ? ' nodad' : ''}`,
  ]);
const defaultBy = (name: Namespace, gateways: readonly string[]): Line[] =>
  gateways.map((gateway) => [name, `route add default via ${gateway}`]);

const GATEWAYS = { pod: ['100.65.20.1', 'fd64:65:20::1'], far: ['100.66.20.1', 'fd64:66:20::1'] } as const;

/** Counts what arrives at a node: `ruleset` of rules, each with a counter under its own name. */
const watch = (name: Namespace, hook: string, matches: Readonly<Record<string, string>>): void => {
  const counters = Object.keys(matches).map((counter) => `counter ${counter} { }`);
  const rules = Object.entries(matches).map(([counter, match]) => `${match} counter name ${counter}`);
  const text = `table inet watch {\n${counters.join('\n')}\nchain c {\ntype filter hook ${hook} priority 0;\n${rules.join('\n')}\n}\n}\n`;
  execFileSync('nsenter', [`--net=${ns[name].path}`, 'nft', '-f', '-'], { input: text });
};
const counted = async (name: Namespace, counter: string): Promise<number> =>
  (await nfts[name].readCounters('inet', 'watch')).find((one) => one.name === counter)!.packets;
/** As the agent's metric has it. */
const dropped = (): Promise<number> =>
  watchDrops(nfts.node, { drops: ['injected_tunnel_packet'] }).of('injected_tunnel_packet');

const MATCHES = {
  udp4789: 'udp dport 4789',
  udp6081: 'udp dport 6081',
  udp51820: 'udp dport 51820',
  udp51822: 'udp dport 51822',
  udp53: 'udp dport 53',
  proto4: 'meta l4proto 4',
  proto41: 'meta l4proto 41',
  proto47: 'meta l4proto 47',
};

const startReceiver = async (): Promise<void> => {
  const net = createRouteSocket({ netnsFd: ns.peer.fd });
  const device = await net.links.create({
    name: 'vxlan0',
    kind: { kind: 'vxlan', external: true, port: 4789, learning: false, udp6ZeroChecksumRx: true },
    mac: innerMac(ADDRESSES.peer[0]),
    arp: false,
    up: true,
  });
  await net.addresses.replace({ link: device.index, address: `${PEER_POD}/32` });
  applyNetworkLines({ peer: ns.peer }, [['peer', 'route add 100.65.20.0/24 dev vxlan0']]);
  const object = loadObject(readFileSync(join(import.meta.dirname, '../../../../../bpf/build/unbounded_encap.bpf.o')), {
    name: 'encap',
  });
  const program = object.program('unbounded_tunnel_ingress');
  const attachment = attachProgram(program, { ifindex: device.index, direction: 'ingress', netnsFd: ns.peer.fd });
  const remote = ADDRESSES.node[0];
  object
    .map('unbounded_endpoints_v4', lpmKeyV4, endpointV4)
    .set('100.65.20.0/24', { remote, vni: 1, ifindex: device.index, protocol: 'vxlan', setKey: true, healthy: true });
  closing.push(
    () => (attachment.via === 'tcx' ? attachment.link.close() : undefined),
    () => object.close(),
    () => net.close(),
  );
};

const LINES: readonly Line[] = [
  wire('node', 'eth0', 'peer', 'eth0'),
  wire('node', 'veth1', 'pod', 'eth0'),
  wire('node', 'wg51822', 'far', 'eth0'),
  ...(['node', 'peer', 'pod', 'far'] as const).flatMap((name) =>
    ['lo', 'eth0'].map((device): Line => [name, `link set ${device} up`]),
  ),
  ['node', 'link add cbr0 type bridge mcast_snooping 0'],
  ['node', 'link set veth1 master cbr0'],
  ...['cbr0', 'veth1', 'wg51822'].map((device): Line => ['node', `link set ${device} up`]),
  ...addAll('node', 'eth0', ADDRESSES.node),
  ...addAll('node', 'cbr0', GATEWAYS.pod),
  ...addAll('node', 'wg51822', GATEWAYS.far),
  ...addAll('peer', 'eth0', [...ADDRESSES.peer, ...EXTERNAL, ...INTERNET, ...UNLISTED, ...ALLOWED]),
  ...addAll('pod', 'eth0', ADDRESSES.pod),
  ...addAll('far', 'eth0', ADDRESSES.far),
  ...(['pod', 'far'] as const).flatMap((place) => defaultBy(place, GATEWAYS[place])),
  ...defaultBy('node', ADDRESSES.peer),
];

beforeAll(async () => {
  ns = { node: createNetns(), peer: createNetns(), pod: createNetns(), far: createNetns() };
  applyNetworkLines(ns, LINES);
  execFileSync('nsenter', [
    `--net=${ns.node.path}`,
    ...['sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1'],
  ]);
  learnNeighbors(ns.node, [...ADDRESSES.peer, ...ADDRESSES.pod, ...ADDRESSES.far]);
  nfts = {
    node: createNftables({ netnsFd: ns.node.fd }),
    peer: createNftables({ netnsFd: ns.peer.fd }),
    pod: createNftables({ netnsFd: ns.pod.fd }),
    far: createNftables({ netnsFd: ns.far.fd }),
  };
  await nfts.node.replaceTable(tableSpec(CONNECTIVITY, planFirewall(plan)));
  watch('peer', 'prerouting', { ...MATCHES, delivered: 'iifname vxlan0 udp dport 7000' });
  watch('node', 'input', MATCHES);
  watch('far', 'prerouting', MATCHES);
  await startReceiver();
});
afterAll(() => {
  for (const close of closing) close();
  for (const sender of senders.values()) sender.end();
  for (const nft of Object.values(nfts)) nft.close();
  for (const one of Object.values(ns)) one.close();
});

const SEND = `use Socket qw(:all);
sub answer {
  my ($protocol, $to, $port, $bytes, $from) = @_;
  my ($problem, $at) = getaddrinfo($to, $port, { flags => AI_NUMERICHOST, socktype => SOCK_DGRAM });
  die $problem if $problem;
  socket(my $socket, $at->{family}, $protocol == 17 ? SOCK_DGRAM : SOCK_RAW, $protocol) or die $!;
  if ($from) { my ($x, $own) = getaddrinfo(undef, $from, { flags => AI_PASSIVE | AI_NUMERICSERV, family => $at->{family}, socktype => SOCK_DGRAM }); bind($socket, $own->{addr}) or die $!; }
  send($socket, pack("H*", $bytes), 0, $at->{addr}) or die $!;
  return;
}`;

const UNPRIVILEGED = [
  'setpriv',
  '--reuid',
  '65534',
  '--regid',
  '65534',
  '--clear-groups',
  '--bounding-set=-all',
  '--inh-caps=-all',
];

interface Shot {
  readonly to: string;
  /** UDP port, or none for another protocol. */
  readonly port?: number;
  readonly protocol?: 4 | 41 | 47;
  readonly bytes?: Uint8Array;
  readonly fromPort?: number;
}
const senders = new Map<string, PerlServer>();
const senderAt = (from: Namespace, isPrivileged: boolean): PerlServer => {
  const key = `${from} ${isPrivileged}`;
  const within = ['nsenter', `--net=${ns[from].path}`, ...(isPrivileged ? [] : UNPRIVILEGED)];
  const sender = senders.get(key) ?? startPerl(within, SEND);
  senders.set(key, sender);
  return sender;
};
const send = async (
  from: Namespace,
  { to, port = 0, protocol, bytes = new Uint8Array(64), fromPort }: Shot,
): Promise<void> => {
  const isPrivileged = protocol !== undefined || (fromPort ?? 1024) < 1024; // raw sockets take CAP_NET_RAW
  const hex = Buffer.from(bytes).toString('hex');
  await senderAt(from, isPrivileged).ask(protocol ?? 17, to, port, hex, fromPort ?? 0);
};

const INNER_MAC = { mac: innerMac(ADDRESSES.peer[0]) };
const forged = datagram('100.65.20.77', PEER_POD, new TextEncoder().encode('forged'));

describe('what the test shows is real', () => {
  test('the node’s own tunnel packets reach the peer and what is in them the pod there', async () => {
    const before = await counted('peer', 'delivered');
    await send('node', { to: ADDRESSES.peer[0], port: 4789, bytes: vxlan(forged, INNER_MAC) });
    expect(await counted('peer', 'delivered')).toBe(before + 1);
  });
});

const PLACES: readonly (readonly [string, Place])[] = [
  ['a pod of this node', 'pod'],
  ['a pod of another site, through this gateway', 'far'],
];

describe.each(PLACES)('%s', (_, place) => {
  test('cannot bring a packet of its making behind the source check of another node', async () => {
    const before = { delivered: await counted('peer', 'delivered'), dropped: await dropped() };
    await send(place, { to: ADDRESSES.peer[0], port: 4789, bytes: vxlan(forged, INNER_MAC) });
    await send(place, { to: ADDRESSES.peer[1], port: 4789, bytes: vxlan(forged, INNER_MAC) });
    expect(await counted('peer', 'delivered')).toBe(before.delivered);
    expect(await dropped()).toBe(before.dropped + 2);
  });

  const kinds: readonly (readonly [keyof typeof MATCHES, Omit<Shot, 'to'>])[] = [
    ['udp4789', { port: 4789 }],
    ['udp6081', { port: 6081, bytes: geneve(forged, INNER_MAC) }],
    ['udp51820', { port: 51820 }],
    ['udp51822', { port: 51822 }],
    ['proto4', { protocol: 4, bytes: forged }],
    ['proto41', { protocol: 41 }],
    ['proto47', { protocol: 47 }],
    ['udp4789', { port: 4789, bytes: new Uint8Array(4000) }], // in three fragments
  ];
  const targets: readonly (readonly [string, readonly string[], 'peer' | 'node'])[] = [
    ['another node', ADDRESSES.peer, 'peer'],
    ['a gateway’s external address', EXTERNAL, 'peer'],
    ['an address of a node that no list has', UNLISTED, 'peer'],
    ['somewhere in the Internet', INTERNET, 'peer'],
    ['this node', ADDRESSES.node, 'node'],
    ['this node’s address in the overlay', GATEWAYS[place], 'node'],
  ];
  const rows = targets.flatMap(([target, addresses, at]) =>
    // WireGuard's packets are nobody's without its keys.
    kinds
      .filter(([counter]) => !(addresses === UNLISTED || addresses === INTERNET) || !counter.startsWith('udp518'))
      .flatMap(([counter, shot]) =>
        addresses.map((to) => ({
          what: `${counter}, ${shot.bytes?.length ?? 64} bytes, to ${target}: ${to}`,
          counter,
          at,
          shot: { ...shot, to },
        })),
      ),
  );
  test.each(rows)('$what: is dropped and counted', async ({ counter, at, shot }) => {
    const before = { arrived: await counted(at, counter), dropped: await dropped() };
    await send(place, shot);
    expect(await counted(at, counter)).toBe(before.arrived);
    expect(await dropped()).toBe(before.dropped + 1);
  });

  test.each([
    ['its own WireGuard to somewhere in the Internet passes', INTERNET, 51820, 'udp51820', 'peer'],
    ['its own tunnels pass to where an administrator lets them', ALLOWED, 4789, 'udp4789', 'peer'],
    ['other packets to nodes pass', ADDRESSES.peer, 53, 'udp53', 'peer'],
    ['other packets to its node pass', ADDRESSES.node, 53, 'udp53', 'node'],
  ] as const)('%s', async (__, addresses, port, counter, at) => {
    const before = { arrived: await counted(at, counter), dropped: await dropped() };
    for (const to of addresses) await send(place, { to, port });
    expect(await counted(at, counter)).toBe(before.arrived + addresses.length);
    expect(await dropped()).toBe(before.dropped);
  });
});

test('tunnels between pods pass: of clusters inside pods', async () => {
  const before = { arrived: await counted('far', 'udp4789'), dropped: await dropped() };
  for (const to of ADDRESSES.far) await send('pod', { to, port: 4789 });
  expect(await counted('far', 'udp4789')).toBe(before.arrived + 2);
  expect(await dropped()).toBe(before.dropped);
});

test('a pod’s answer to a port that the node has for a moment passes, though WireGuard of another node has that port', async () => {
  const answer = `use Socket; socket(my $s, PF_INET, SOCK_DGRAM, 17); bind($s, pack_sockaddr_in(5300, INADDR_ANY)); $| = 1; print "ready\\n"; my $from = recv($s, my $q, 99, 0); send($s, "answer", 0, $from);`;
  const pod = spawn('nsenter', [`--net=${ns.pod.path}`, 'perl', '-e', answer], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(pod.stdout, 'data');
  const before = await counted('node', 'udp51822');
  const done = once(pod, 'exit');
  await send('node', { to: ADDRESSES.pod[0], port: 5300, fromPort: 51822 });
  await done;
  expect(await counted('node', 'udp51822')).toBe(before + 1);
});
