import { execFileSync } from 'node:child_process';
import { groupKey, innerMac, nexthopGroup } from '@unbounded/bpf-maps';
import { PIN_FOLDER } from '@unbounded/config/ownership';
import { openPinnedMap } from '@unbounded/libbpf-ts';
import { createNetns, type Netns } from '@unbounded/netlink';
import { createMetrics } from '@unbounded/telemetry';
import { openTestDataplane } from '../../connectivity/dataplane.testdata.ts';
import { applyPlan } from '../../connectivity/dataplane.ts';
import { printReport } from '../../printed-report.testdata.ts';
import { planFor } from '../../testdata.ts';
import { DEVICES } from '../devices.ts';
import { groupMapPin } from './forwarding-maps.ts';
import { datagram, vxlan } from '../netlink/packets.testdata.ts';

/**
 * The worker w1 with its eBPF programs, in the network namespace of the process, and its peer x1 in another. Sends a packet for each
 * reason for which the programs drop one, and prints by how much the agent's metric of the reason rose.
 */

/** By reason: what the metric of each reason said before its packet was sent, and afterwards. */
export type Report = Readonly<Record<string, readonly [before: number, after: number]>>;

const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });

/** DEVICE ETHERTYPE HEX: a frame, as a program of the host sends it. */
const SEND_FRAME = `use Socket; use Errno;
my ($index, $type, $hex) = @ARGV;
socket(my $s, 17, SOCK_RAW, 0) or die $!; # AF_PACKET
send($s, pack("H*", $hex), 0, pack("S n i S C C a8", 17, hex $type, $index, 1, 0, 6, "\\xff" x 6)) or $!{ENOBUFS} or die $!; # ENOBUFS: dropped there`;
/** ADDRESS PORT HEX */
const SEND_UDP = `use IO::Socket::INET;
my $s = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => $ARGV[1], Proto => "udp") or die $!;
$s->send(pack "H*", $ARGV[2]) or die $!;`;

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const ipv4 = (source: string, destination: string): Uint8Array => datagram(source, destination, Buffer.from('x'));

const OWN = '100.65.30.9';
const PEER_POD = '100.65.31.9';
const FAR_POD = '100.66.7.7';

const makePeer = (): Netns => {
  const peer = createNetns();
  run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', peer.path);
  const inPeer = (line: string): string => run('nsenter', `--net=${peer.path}`, 'ip', ...line.split(' '));
  for (const line of ['link set lo up', 'link set eth0 up']) {
    inPeer(line);
    run('ip', ...line.split(' '));
  }
  run('ip', 'addr', 'add', '10.1.0.30/24', 'dev', 'eth0');
  inPeer('addr add 10.1.0.31/24 dev eth0');
  return peer;
};

/** Sends a frame out of a device, past whatever routes there are. */
const sendFrame = (device: string, etherType: string, payload: Uint8Array): void => {
  const [{ ifindex }] = JSON.parse(run('ip', '-j', 'link', 'show', device)) as [{ ifindex: number }];
  const header = `${'ff'.repeat(6)}020000000001${etherType}`;
  run('perl', '-e', SEND_FRAME, String(ifindex), etherType, `${header}${hexOf(payload)}`);
};

/** What x1 says is in its tunnel. */
const sendTunneled = (peer: Netns, packet: Uint8Array): void => {
  const bytes = vxlan(packet, { mac: innerMac('10.1.0.30') });
  run('nsenter', `--net=${peer.path}`, 'perl', '-e', SEND_UDP, '10.1.0.30', '4789', hexOf(bytes));
};

/** Hands a frame to the tunnel device that came by no tunnel: it has no sender. */
const sendUntunneled = (peer: Netns, packet: Uint8Array): void => {
  run('tc', 'qdisc', 'add', 'dev', 'eth0', 'clsact');
  const redirect = ['action', 'mirred', 'ingress', 'redirect', 'dev', DEVICES.VXLAN];
  // That one alone: what the kernels of both send by themselves (IGMP, errors) would be counted, too.
  const match = ['u32', 'match', 'ip', 'src', `${PEER_POD}/32`, 'match', 'ip', 'dst', `${OWN}/32`];
  run('tc', 'filter', 'add', 'dev', 'eth0', 'ingress', 'protocol', 'ip', ...match, ...redirect);
  const etherType = '0800';
  const header = `${innerMac('10.1.0.30').replaceAll(':', '')}020000000001${etherType}`;
  const link = ['nsenter', `--net=${peer.path}`];
  const [{ ifindex }] = JSON.parse(run(...link, 'ip', '-j', 'link', 'show', 'eth0')) as [{ ifindex: number }];
  run(...link, 'perl', '-e', SEND_FRAME, String(ifindex), etherType, `${header}${hexOf(packet)}`);
  run('tc', 'qdisc', 'del', 'dev', 'eth0', 'clsact');
};

/** While the map of next-hop groups is empty. */
const withoutGroups = (send: () => void): void => {
  using groups = openPinnedMap(groupMapPin(PIN_FOLDER), groupKey, nexthopGroup);
  const entries = [...groups.entries()];
  groups.deleteMany(entries.map(([key]) => key));
  send();
  groups.setMany(entries);
};

const main = async (): Promise<Report> => {
  const peer = makePeer();
  const metrics = createMetrics();
  const dataplane = openTestDataplane('ebpf', metrics);
  const plan = planFor('w1', 'VXLAN');
  await applyPlan(dataplane, plan);
  const dropped = async (reason: string): Promise<number> =>
    Number(
      new RegExp(`unbounded_overlay_dropped_packets_total\\{reason="${reason}"\\} (\\d+)`).exec(
        await metrics.render(),
      )?.[1],
    );
  const provoke: Readonly<Record<string, () => void>> = {
    no_endpoint: () => sendFrame(DEVICES.anchor, '0800', ipv4(OWN, '198.51.100.9')),
    no_member() {
      withoutGroups(() => sendFrame(DEVICES.anchor, '0800', ipv4(OWN, FAR_POD)));
    },
    malformed: () => sendFrame(DEVICES.anchor, '0800', Buffer.of(0x45, 0, 0, 20)),
    not_ip: () => sendFrame(DEVICES.anchor, '88b5', Buffer.alloc(46)),
    forged_source: () => sendTunneled(peer, ipv4(FAR_POD, OWN)),
    unknown_source: () => sendTunneled(peer, ipv4('192.0.2.9', OWN)),
    key: () => sendUntunneled(peer, ipv4(PEER_POD, OWN)),
  };
  const report: Record<string, readonly [number, number]> = {};
  for (const [reason, send] of Object.entries(provoke)) {
    const before = await dropped(reason);
    send();
    report[reason] = [before, await dropped(reason)];
  }
  await dataplane.health.stop();
  dataplane.path.close();
  peer.close();
  return report;
};

await printReport(await main());
process.exit(0);
