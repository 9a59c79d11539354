import { execFileSync } from 'node:child_process';
import { CONNECTIVITY } from '@unbounded/config/ownership';
import { createNetns, createRouteSocket, type Netns } from '@unbounded/netlink';
import { createNftables, type Nftables } from '@unbounded/nftables';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { watchDrops } from '../../kernel/dropped-packets.testdata.ts';
import { tableSpec } from '../../kernel/section-table.ts';
import { planOf } from './boundary-lab.testdata.ts';
import { COUNTERS } from './firewall-parts.ts';
import { planArpTable, planFirewall } from './firewall.plan.ts';
import { type Arp, arpFrame, type Discovery, discoveryFrame, SENDER_MAC } from './neighbor-packets.testdata.ts';
import { findNetwork } from './own-network.ts';

/** The gateway g1 on a LAN (`eth0`), to which anybody sends what he likes. It believes all that the kernel may. */

const OWN = ['10.1.0.20', 'fd00:1::20'] as const;
const NEAR = ['10.1.0.40', 'fd00:1::40'] as const;
const FAR_POD = ['100.66.20.9', 'fd64:66:20::9'] as const;
const FAR_NODE = ['10.2.0.31', 'fd00:2::31'] as const;
const ALL = 'ff:ff:ff:ff:ff:ff';
/** Without a tag, and with one of priority alone, which needs no device of a VLAN: those of a VLAN come in like the first. */
const TAGS = [undefined, 0] as const;

const SEND = `socket(my $s, 17, 3, 0) or die $!;
send($s, pack("H*", $ARGV[1]), 0, pack("S n i S C C a8", 17, 3, $ARGV[0], 0, 0, 6, "")) or die $!;`;

let node: Netns;
let outside: Netns;
let nft: Nftables;
let mac: string;
let outsideIndex: string;
const within = (ns: Netns, ...argv: string[]): string =>
  execFileSync('nsenter', [`--net=${ns.path}`, ...argv], { encoding: 'utf8' });
const ip = (ns: Netns, line: string): string => within(ns, 'ip', ...line.split(' '));

beforeAll(async () => {
  [node, outside] = [createNetns(), createNetns()];
  ip(node, `link add eth0 type veth peer name eth0 netns ${outside.path}`);
  ip(outside, 'link set eth0 up');
  for (const device of ['lo', 'eth0']) ip(node, `link set ${device} up`);
  for (const key of [
    '4.conf.all.arp_accept',
    '6.conf.all.forwarding',
    '6.conf.all.accept_untracked_na',
    '6.conf.eth0.accept_untracked_na',
  ])
    within(node, 'sysctl', '-qw', `net.ipv${key}=1`);
  ip(node, `addr add ${OWN[0]}/24 dev eth0`);
  ip(node, `addr add ${OWN[1]}/64 dev eth0 nodad`);
  ip(node, 'route add default via 10.1.0.1');
  ip(node, '-6 route add default via fd00:1::1');
  mac = (JSON.parse(ip(node, '-j link show eth0')) as { address: string }[])[0]!.address;
  outsideIndex = String((JSON.parse(ip(outside, '-j link show eth0')) as { ifindex: number }[])[0]!.ifindex);
  nft = createNftables({ netnsFd: node.fd });
  const plan = planOf({ role: 'gateway', protocol: 'VXLAN', dataplane: 'ebpf' });
  const net = createRouteSocket({ netnsFd: node.fd });
  const network = await findNetwork(net, await net.addresses.list(), plan);
  net.close();
  await nft.replaceTable(tableSpec(CONNECTIVITY, planFirewall(plan, { network })));
  await nft.replaceTable(tableSpec(CONNECTIVITY, planArpTable(plan, { network }), 'arp'));
});
afterAll(() => {
  nft.close();
  node.close();
  outside.close();
});

const tagOf = (vlan: number | undefined) => (vlan === undefined ? {} : { vlan });

/** Whom the node then believes to be at the sender's MAC. */
const learned = (hex: string): string[] => {
  ip(node, 'neigh flush all');
  within(outside, 'perl', '-e', SEND, outsideIndex, hex);
  const entries = JSON.parse(ip(node, '-j neigh show nud all')) as { dst: string; lladdr?: string }[];
  return entries.filter(({ lladdr }) => lladdr === SENDER_MAC).map(({ dst }) => dst);
};
/** As the agent's metrics have it. What comes from a pod's address is forged, whatever it is. */
const REASONS = [COUNTERS.overlayNeighbor, COUNTERS.forgedSource];
const dropped = async (): Promise<number> => {
  const tables = (['inet', 'arp'] as const).map((family) => watchDrops(nft, { family, drops: REASONS }));
  const all = await Promise.all(tables.map((table) => table.all()));
  return all.flatMap((one) => Object.values(one)).reduce((sum, packets) => sum + packets, 0);
};
/** What a frame leaves behind. */
const outcomeOf = async (hex: string): Promise<{ readonly entries: readonly string[]; readonly dropped: number }> => {
  const before = await dropped();
  return { entries: learned(hex), dropped: (await dropped()) - before };
};
const REFUSED = { entries: [], dropped: 1 };

type ArpRow = readonly [what: string, arp: (who: string) => Omit<Arp, 'vlan'>];
const ARP: readonly ArpRow[] = [
  ['a request', (who) => ({ to: ALL, operation: 'request', sender: who, target: OWN[0] })],
  ['a request to the node alone', (who) => ({ to: mac, operation: 'request', sender: who, target: OWN[0] })],
  ['a reply', (who) => ({ to: mac, operation: 'reply', sender: who, target: OWN[0] })],
  ['an announcement as a request', (who) => ({ to: ALL, operation: 'request', sender: who, target: who })],
  ['an announcement as a reply', (who) => ({ to: ALL, operation: 'reply', sender: who, target: who })],
];
type NdRow = readonly [what: string, packet: (who: string) => Omit<Discovery, 'vlan'>];
const DISCOVERY: readonly NdRow[] = [
  ['a solicitation', (who) => ({ to: mac, type: 135, source: who, destination: OWN[1], target: OWN[1] })],
  ['an advertisement', (who) => ({ to: mac, type: 136, source: who, destination: OWN[1], target: who })],
  [
    'an advertisement of somebody else',
    (who) => ({ to: mac, type: 136, source: 'fe80::99', destination: OWN[1], target: who }),
  ],
];

describe.each(TAGS)('with the VLAN tag %s', (vlan) => {
  describe.each([
    ['pod', FAR_POD],
    ['node', FAR_NODE],
  ] as const)('in the name of a far %s', (_, [v4, v6]) => {
    test.each(ARP)('%s leaves no entry', async (_what, arp) => {
      expect(await outcomeOf(arpFrame({ ...arp(v4), ...tagOf(vlan) }))).toEqual(REFUSED);
    });
    test('a probe for its address is not heard', async () => {
      expect(
        await outcomeOf(arpFrame({ to: ALL, operation: 'request', sender: '0.0.0.0', target: v4, ...tagOf(vlan) })),
      ).toEqual(REFUSED);
    });
    test.each(DISCOVERY)('%s leaves no entry', async (_what, packet) => {
      expect(await outcomeOf(discoveryFrame({ ...packet(v6), ...tagOf(vlan) }))).toEqual(REFUSED);
    });
    test('a solicitation of a router leaves no entry', async () => {
      expect(
        await outcomeOf(discoveryFrame({ to: mac, type: 133, source: v6, destination: OWN[1], ...tagOf(vlan) })),
      ).toEqual(REFUSED);
    });
    test('a probe (duplicate address detection) for its address is not heard', async () => {
      expect(
        await outcomeOf(
          discoveryFrame({ to: mac, type: 135, source: '::', destination: OWN[1], target: v6, ...tagOf(vlan) }),
        ),
      ).toEqual(REFUSED);
    });
  });
});

describe('a neighbor of the LAN is believed', () => {
  test.each(ARP)('%s', (_, arp) => {
    expect(learned(arpFrame(arp(NEAR[0])))).toEqual([NEAR[0]]);
  });
  test.each(DISCOVERY)('%s', (_, packet) => {
    expect(learned(discoveryFrame(packet(NEAR[1])))).toContain(NEAR[1]);
  });
  test('and found, by its own answer', () => {
    ip(outside, `addr add ${NEAR[0]}/24 dev eth0`);
    ip(outside, `addr add ${NEAR[1]}/64 dev eth0 nodad`);
    ip(node, 'neigh flush all');
    for (const address of NEAR)
      expect(within(node, 'ping', '-c', '1', '-w', '5', '-i', '0.05', address)).toContain('1 received');
  });
});

test('with plain routing a node finds a neighbor by a packet between their addresses in the overlay', async () => {
  const [own, other] = ['100.65.20.1', '100.65.31.1'];
  const plain = planOf({ role: 'gateway', protocol: 'None', dataplane: 'ebpf' });
  await nft.replaceTable(tableSpec(CONNECTIVITY, planFirewall(plain)));
  await nft.replaceTable(tableSpec(CONNECTIVITY, planArpTable(plain), 'arp'));
  ip(outside, `addr replace ${NEAR[0]}/24 dev eth0`);
  ip(outside, `addr replace ${other}/32 dev eth0`);
  ip(outside, `route replace ${own}/32 via ${OWN[0]}`);
  ip(outside, `neigh replace ${OWN[0]} lladdr ${mac} dev eth0 nud permanent`); // its own requests would tell the node where it is
  ip(node, `addr replace ${own}/32 dev lo`);
  ip(node, `route replace ${other}/32 via ${NEAR[0]} src ${own}`);
  ip(node, 'neigh flush all');
  // The kernel asks for the neighbor with the source of the packet (ip-sysctl, arp_announce 0): the answer has it as its target.
  expect(within(node, 'sh', '-c', `ping -c 1 -w 3 -i 0.2 ${other} || true`)).toContain('1 received');
});

test('a far node in a subnet that it shares with this one is found there', async () => {
  ip(node, 'addr add 10.2.0.20/24 dev eth0');
  const plan = planOf({ role: 'gateway', protocol: 'VXLAN', dataplane: 'ebpf' });
  const net = createRouteSocket({ netnsFd: node.fd });
  const network = await findNetwork(net, await net.addresses.list(), plan);
  net.close();
  await nft.replaceTable(tableSpec(CONNECTIVITY, planArpTable(plan, { network }), 'arp'));
  expect(learned(arpFrame({ to: ALL, operation: 'request', sender: FAR_NODE[0], target: '10.2.0.20' }))).toEqual([
    FAR_NODE[0],
  ]);
});
