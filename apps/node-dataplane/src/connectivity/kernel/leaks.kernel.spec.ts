import { CONNECTIVITY } from '@unbounded/config/ownership';
import { execFileSync } from 'node:child_process';
import { createNetns, type Netns } from '@unbounded/netlink';
import { createNftables, type Nftables } from '@unbounded/nftables';
import type { DataPathKind, KernelPlan } from '../../data-path/kernel-plan.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { planFor } from '../../testdata.ts';
import { planFirewall } from './firewall.plan.ts';
import { watchDrops } from '../../kernel/dropped-packets.testdata.ts';
import { tableSpec } from '../../kernel/section-table.ts';

/**
 * The worker w1 with our table, but without an anchor, a tunnel or a route of ours: whatever is for the overlay takes the
 * default route, behind which a capture counts it.
 */

type Namespace = 'node' | 'pod' | 'uplink';
let ns: Record<Namespace, Netns>;
let nft: Nftables;

const within = (name: Namespace, ...argv: string[]): string =>
  execFileSync('nsenter', [`--net=${ns[name].path}`, ...argv], { encoding: 'utf8' });
const ip = (name: Namespace, line: string): string => within(name, 'ip', ...line.split(' '));

const OVERLAY = ['100.66.20.7', '100.65.31.7', 'fd64:66:20::7', 'fd64:65:31::7'] as const;
const OUTSIDE = ['198.51.100.9', '2001:db8:51::9'] as const;

const planOf = (dataplane: DataPathKind): KernelPlan => {
  const own = planFor('w1', 'VXLAN', dataplane);
  const blocks = ['fd64:65::/32', 'fd64:66::/32'];
  const via = dataplane === 'ebpf' ? ('anchor' as const) : ('unreachable' as const);
  return {
    ...own,
    routes: [...own.routes, ...blocks.map((prefix) => ({ prefix, via, mtuBytes: 1400 }))],
    masquerade: { ...own.masquerade, sources: [...own.masquerade.sources, ...blocks] },
    boundary: { ...own.boundary, ownPods: [...own.boundary.ownPods, 'fd64:65:30::/64'] },
  };
};

const WATCH = `table inet watch {
counter overlay { }
counter outside { }
chain c {
type filter hook prerouting priority -300;
ip daddr 100.64.0.0/10 counter name overlay
ip6 daddr fd64::/16 counter name overlay
ip daddr ${OUTSIDE[0]} counter name outside
ip6 daddr ${OUTSIDE[1]} counter name outside
}
}
`;
const captured = (counter: string): number =>
  Number(/packets (\d+)/.exec(within('uplink', 'nft', 'list', 'counter', 'inet', 'watch', counter))![1]);
/** As the agent's metric has it. */
const leaks = (): Promise<number> => watchDrops(nft, { drops: ['overlay_leak'] }).of('overlay_leak');

beforeEach(() => {
  ns = { node: createNetns(), pod: createNetns(), uplink: createNetns() };
  ip('node', `link add eth0 type veth peer name eth0 netns ${ns.uplink.path}`);
  ip('node', `link add cbr0 type veth peer name eth0 netns ${ns.pod.path}`);
  for (const name of Object.keys(ns) as Namespace[])
    for (const device of ['lo', 'eth0']) ip(name, `link set ${device} up`);
  ip('node', 'link set cbr0 up');
  const addresses: readonly (readonly [Namespace, string, string, string])[] = [
    ['node', 'eth0', '10.1.0.30', 'fd00:1::30'],
    ['node', 'cbr0', '100.65.30.1', 'fd64:65:30::1'],
    ['pod', 'eth0', '100.65.30.9', 'fd64:65:30::9'],
    ['uplink', 'eth0', '10.1.0.1', 'fd00:1::1'],
  ];
  for (const [name, device, v4, v6] of addresses) {
    ip(name, `addr add ${v4}/24 dev ${device}`);
    ip(name, `addr add ${v6}/64 dev ${device} nodad`);
  }
  for (const [name, v4, v6] of [
    ['node', '10.1.0.1', 'fd00:1::1'],
    ['pod', '100.65.30.1', 'fd64:65:30::1'],
  ] as const) {
    ip(name, `route add default via ${v4}`);
    ip(name, `-6 route add default via ${v6}`);
  }
  for (const key of ['net.ipv4.ip_forward', 'net.ipv6.conf.all.forwarding'])
    within('node', 'sysctl', '-qw', `${key}=1`);
  execFileSync('nsenter', [`--net=${ns.uplink.path}`, 'nft', '-f', '-'], { input: WATCH });
  nft = createNftables({ netnsFd: ns.node.fd });
});
afterEach(() => {
  nft.close();
  for (const one of Object.values(ns)) one.close();
});

/** The kernel tells a local sender of a packet that was dropped on its way out (EPERM). */
const SEND = `use Socket qw(:all);
my ($problem, $at) = getaddrinfo($ARGV[0], 9, { flags => AI_NUMERICHOST, socktype => SOCK_DGRAM });
socket(my $socket, $at->{family}, SOCK_DGRAM, 17) or die $!;
send($socket, "x", 0, $at->{addr}) or $!{EPERM} or die $!;`;
const send = (from: 'node' | 'pod', to: string): void => void within(from, 'perl', '-e', SEND, to);

describe.each<DataPathKind>(['ebpf', 'netlink'])('under the %s data path', (dataplane) => {
  test('without the table packets for the overlay would leave by the default route', () => {
    for (const from of ['node', 'pod'] as const) for (const to of OVERLAY) send(from, to);
    expect(captured('overlay')).toBe(2 * OVERLAY.length);
  });

  test('none leaves by it, of a pod or of the host, and each is counted', async () => {
    await nft.replaceTable(tableSpec(CONNECTIVITY, planFirewall(planOf(dataplane))));
    for (const from of ['node', 'pod'] as const) for (const to of OVERLAY) send(from, to);
    expect(captured('overlay')).toBe(0);
    expect(await leaks()).toBe(2 * OVERLAY.length);
  });

  test('what is for the outside leaves', async () => {
    await nft.replaceTable(tableSpec(CONNECTIVITY, planFirewall(planOf(dataplane))));
    for (const from of ['node', 'pod'] as const) for (const to of OUTSIDE) send(from, to);
    expect(captured('outside')).toBe(2 * OUTSIDE.length);
    expect(await leaks()).toBe(0);
  });

  test('what is routed natively leaves, and what is about to change from that', async () => {
    const plan = planOf(dataplane);
    const native = { prefix: '100.66.20.0/24', via: { gateways: ['10.1.0.1'] }, mtuBytes: 1500 };
    await nft.replaceTable(
      tableSpec(
        CONNECTIVITY,
        planFirewall({ ...plan, routes: [...plan.routes, native], alsoPlain: ['fd64:66:20::/48'] }),
      ),
    );
    for (const to of OVERLAY) send('pod', to);
    expect(captured('overlay')).toBe(2);
    expect(await leaks()).toBe(2);
  });
});
