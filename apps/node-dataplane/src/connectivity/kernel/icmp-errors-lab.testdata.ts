import { CONNECTIVITY } from '@unbounded/config/ownership';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createNetns, type Netns } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import { type PerlServer, startPerl } from '@unbounded/testing/perl-server';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { planFor } from '../../testdata.ts';
import { planFirewall } from './firewall.plan.ts';
import { watchDrops } from '../../kernel/dropped-packets.testdata.ts';
import { applyNetworkLines, learnNeighbors, type NetworkLine } from '../../kernel/network-lines.testdata.ts';
import { tableSpec } from '../../kernel/section-table.ts';

/**
 * The gateway g1 with our table, a pod of its own behind `cbr0`, a pod of another site behind `wg51822` (a veth here: what is
 * decrypted), its LAN, and behind that, over a link of 1300 bytes, another site's gateway and the Internet.
 */

export type Namespace = 'node' | 'lan' | 'pod' | 'overlay' | 'beyond';
export const NARROW_BYTES = 1300;

export const ADDRESSES = {
  node: ['10.1.0.20', 'fd00:1::20'],
  lan: ['10.1.0.1', 'fd00:1::1'],
  pod: ['100.65.20.9', 'fd64:65:20::9'],
  overlay: ['100.66.20.9', 'fd64:66:20::9'],
  beyond: ['203.0.113.2', '2001:db8:113::2'],
} as const;
const BRIDGES = { pod: ['100.65.20.1', 'fd64:65:20::1'], overlay: ['100.66.20.1', 'fd64:66:20::1'] } as const;
const ROUTER = ['203.0.113.1', '2001:db8:113::1'] as const;
export const INTERNET = ['198.51.100.9', '2001:db8:51::9'] as const;

const planOfGateway = (): KernelPlan => {
  const { transitRoutes: _, ...own } = planFor('g1', 'WireGuard');
  const { sources, exceptTo } = own.masquerade;
  const pods = ['fd64:65::/32', 'fd64:66::/32'];
  const { addresses, wireGuardPorts } = own.tunnelEnds;
  return {
    ...own,
    masquerade: { sources: [...sources, ...pods], exceptTo: [...exceptTo, ...pods] },
    boundary: { ...own.boundary, ownPods: [...own.boundary.ownPods, pods[0]!] },
    tunnelEnds: { addresses: [...addresses, 'fd00:1::/64', '2001:db8:113::2/128'], wireGuardPorts },
  };
};

/** What has tunnels' ports and protocols at the node, and what has not: the kernel learns for whoever has a socket. */
const SOCKETS = `use Socket qw(:all); my @all; $| = 1;
for my $port (6081, 5300, 51820, 51822) {
  socket(my $s, AF_INET6, SOCK_DGRAM, 17) or die $!; bind($s, pack_sockaddr_in6($port, IN6ADDR_ANY)) or die "$port $!"; push @all, $s; }
for my $family (AF_INET, AF_INET6) { for my $protocol (4, 41, 47) {
  socket(my $s, $family, SOCK_RAW, $protocol) or die $!; push @all, $s; } }
print "ready\\n"; sleep;`;

/** Sends packets of a protocol: pairs of a destination and bytes. */
const SEND = `use Socket qw(:all);
sub answer {
  my ($from, $protocol, @shots) = @_;
  my $family = $from =~ /:/ ? AF_INET6 : AF_INET;
  my $at = sub { my $bytes = inet_pton($family, $_[0]); $family == AF_INET ? pack_sockaddr_in(0, $bytes) : pack_sockaddr_in6(0, $bytes) };
  socket(my $s, $family, SOCK_RAW, $protocol) or die $!;
  bind($s, $at->($from)) or die "bind $from: $!";
  while (my ($to, $bytes) = splice @shots, 0, 2) { send($s, pack("H*", $bytes), 0, $at->($to)) or die $!; }
  return;
}`;

type Shot = readonly [to: string, bytes: Uint8Array];

/** Commands in the namespaces. */
const openTools = (ns: Record<Namespace, Netns>) => {
  const children: ChildProcess[] = [];
  const within = (name: Namespace, ...argv: string[]): string =>
    execFileSync('nsenter', [`--net=${ns[name].path}`, ...argv], { encoding: 'utf8' });
  const perl = (name: Namespace, script: string, ...argv: string[]): ChildProcess => {
    const child = spawn('nsenter', [`--net=${ns[name].path}`, 'perl', '-e', script, ...argv], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    children.push(child);
    return child;
  };
  return { ns, children, within, perl };
};
type Tools = ReturnType<typeof openTools>;

type Line = NetworkLine<Namespace>;

const wire = (a: Namespace, nameA: string, b: Namespace, nameB: string): Line[] => [
  [a, `link add ${nameA} type veth peer name ${nameB} netns ${b}`],
  [a, `link set ${nameA} up`],
  [b, `link set ${nameB} up`],
];
const add = (name: Namespace, device: string, [v4, v6]: readonly [string, string]): Line[] => [
  [name, `addr add ${v4}/24 dev ${device}`],
  [name, `addr add ${v6}/64 dev ${device} nodad`],
];
const by = (name: Namespace, routers: readonly [string, string]): Line[] =>
  routers.map((router) => [name, `route add default via ${router}`]);

const NAMESPACES = ['node', 'lan', 'pod', 'overlay', 'beyond'] as const satisfies Namespace[];
const LINES: readonly Line[] = [
  ...NAMESPACES.map((name): Line => [name, 'link set lo up']),
  ...wire('node', 'eth0', 'lan', 'eth0'),
  ...wire('node', 'veth1', 'pod', 'eth0'),
  ...wire('node', 'wg51822', 'overlay', 'eth0'),
  ...wire('lan', 'eth1', 'beyond', 'eth0'),
  ['lan', `link set eth1 mtu ${NARROW_BYTES}`],
  ['node', 'link add cbr0 type bridge mcast_snooping 0'],
  ['node', 'link set veth1 master cbr0'],
  ['node', 'link set cbr0 up'],
  ['node', 'link add vxlan0 type vxlan external dstport 4789'],
  ['node', 'link set vxlan0 up'],
  ...NAMESPACES.flatMap((name) => add(name, 'eth0', ADDRESSES[name])),
  ...add('lan', 'eth1', ROUTER),
  ...add('node', 'cbr0', BRIDGES.pod),
  ...add('node', 'wg51822', BRIDGES.overlay),
  ...add('beyond', 'eth0', INTERNET),
  ...by('pod', BRIDGES.pod),
  ...by('overlay', BRIDGES.overlay),
  ...by('node', ADDRESSES.lan),
  ...by('beyond', ROUTER),
  ['lan', 'route add 198.51.100.0/24 dev eth1'],
  ['lan', 'route add 2001:db8:51::/64 dev eth1'],
];

const connectAll = ({ ns, within }: Tools): void => {
  for (const name of ['node', 'lan'] as const)
    within(name, 'sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1');
  applyNetworkLines(ns, LINES);
  learnNeighbors(ns.node, [...ADDRESSES.lan, ...ADDRESSES.pod, ...ADDRESSES.overlay]);
  learnNeighbors(ns.lan, ADDRESSES.beyond);
};

export const openLab = async () => {
  const ns: Record<Namespace, Netns> = {
    node: createNetns(),
    lan: createNetns(),
    pod: createNetns(),
    overlay: createNetns(),
    beyond: createNetns(),
  };
  const tools = openTools(ns);
  const { children, within, perl } = tools;
  connectAll(tools);
  const nft = createNftables({ netnsFd: ns.node.fd });
  await nft.replaceTable(tableSpec(CONNECTIVITY, planFirewall(planOfGateway())));
  await once(perl('node', SOCKETS).stdout!, 'data');
  const senders = new Map<Namespace, PerlServer>();
  const senderAt = (name: Namespace): PerlServer => {
    const sender = senders.get(name) ?? startPerl(['nsenter', `--net=${ns[name].path}`], SEND);
    senders.set(name, sender);
    return sender;
  };

  return {
    /** Lines of `ip`. */
    apply: (name: Namespace, lines: readonly string[]): void =>
      applyNetworkLines<string>(
        { [name]: ns[name] },
        lines.map((line) => [name, line] as const),
      ),
    within,
    perl,
    /** Sends errors, or packets of another protocol, from an address of the namespace. */
    async send(
      name: Namespace,
      from: string,
      shots: readonly Shot[],
      protocol = from.includes(':') ? 58 : 1,
    ): Promise<void> {
      const words = shots.flatMap(([to, bytes]) => [to, Buffer.from(bytes).toString('hex')]);
      await senderAt(name).ask(from, protocol, ...words);
    },
    /** Path MTUs that a namespace has learned, by the routes to these addresses. */
    learned(name: Namespace, addresses: readonly string[]): Record<string, number> {
      const input = addresses.map((address) => `route get ${address}\n`).join('');
      const argv = [`--net=${ns[name].path}`, 'ip', '-oneline', '-batch', '-'];
      const lines = execFileSync('nsenter', argv, { encoding: 'utf8', input }).trim().split('\n');
      const found = addresses.flatMap((address, index): [string, number][] => {
        if (!lines[index]?.startsWith(`${address} `)) throw new Error(`route get ${address}: ${lines[index]}`);
        const bytes = /\bmtu (\d+)/.exec(lines[index])?.[1];
        return bytes === undefined ? [] : [[address, Number(bytes)]];
      });
      return Object.fromEntries(found);
    },
    cached: (name: Namespace): string => within(name, 'sh', '-ec', 'ip -4 route show cache; ip -6 route show cache'),
    forget: (name: Namespace): void =>
      void within(name, 'sh', '-ec', 'ip -4 route flush cache; ip -6 route flush cache'),
    /** As the agent's metric has it. */
    counted: (): Promise<number> => watchDrops(nft, { drops: ['tunnel_icmp_error'] }).of('tunnel_icmp_error'),
    close(): void {
      for (const child of children) child.kill();
      for (const sender of senders.values()) sender.end();
      nft.close();
      for (const one of Object.values(ns)) one.close();
    },
  };
};
export type Lab = Awaited<ReturnType<typeof openLab>>;
