import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { ADDRESSES, INTERNET, type Lab, NARROW_BYTES, type Namespace, openLab } from './icmp-errors-lab.testdata.ts';
import { type Carried, echoReply, plain, type Shape, tooBig, udp, type Version } from './icmp-errors.testdata.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await openLab();
  lab.apply('lan', [
    ...FAR_ENDS[4].map((address) => `addr add ${address}/24 dev eth0`),
    ...FAR_ENDS[6].map((address) => `addr add ${address}/64 dev eth0 nodad`),
  ]);
});
afterEach(() => lab.forget('node'));
afterAll(() => lab.close());

const VERSIONS = [4, 6] as const;
const of = <Value>([v4, v6]: readonly [Value, Value], version: Version): Value => (version === 4 ? v4 : v6);
const LEARNED = { 4: 600, 6: 1290 } as const;
const PLAIN: Shape = { name: 'with a plain header' };

/** What a node sends to far ends; ports of GENEVE and WireGuard stand at either end. */
const carriedBy = (version: Version): readonly Carried[] => [
  udp(50_000, 4789),
  udp(6081, 6081),
  udp(51_820, 51_821),
  udp(51_822, 40_000),
  plain(4),
  plain(41),
  plain(47),
  echoReply(version),
  udp(5300, 5300), // a socket, but no connection
];
/** One for each of them. */
const FAR_ENDS = {
  4: carriedBy(4).map((_, index) => `10.1.0.${100 + index}`),
  6: carriedBy(6).map((_, index) => `fd00:1::${100 + index}`),
} as const;

const SHAPES: Readonly<Record<Version, readonly Shape[]>> = {
  4: [
    PLAIN,
    { name: 'with options of 4 bytes', optionBytes: 4 },
    { name: 'with options of 40 bytes', optionBytes: 40 },
    { name: 'with another version', versionNumber: 5 },
    { name: 'of a later fragment', fragmentOffset: 185 },
  ],
  6: [
    PLAIN,
    { name: 'with another version', versionNumber: 4 },
    { name: 'with Hop-by-Hop Options', extensions: [[0, 8]] },
    { name: 'with long Destination Options', extensions: [[60, 64]] },
    { name: 'with an Authentication header', extensions: [[51, 24]] },
    {
      name: 'with three extension headers',
      extensions: [
        [0, 8],
        [43, 24],
        [60, 16],
      ],
    },
    { name: 'of a first fragment', extensions: [[44, 8]] },
    {
      name: 'of a first fragment with Destination Options',
      extensions: [
        [44, 8],
        [60, 8],
      ],
    },
    { name: 'of a later fragment', extensions: [[44, 8]], fragmentOffset: 185 },
  ],
};

const errorAbout = (version: Version, to: string, carried: Carried, shape: Shape = PLAIN): Uint8Array =>
  tooBig({ version, from: of(ADDRESSES.node, version), to, carried, shape }, LEARNED[version]);

const SENDERS: readonly (readonly [string, Namespace])[] = [
  ['a LAN host', 'lan'],
  ['a pod of the node', 'pod'],
  ['a pod of another site', 'overlay'],
];

const attempts = SENDERS.flatMap(([from, place]) =>
  VERSIONS.flatMap((version) => SHAPES[version].map((shape) => ({ from, place, version, shape, what: shape.name }))),
);

describe('errors about tunnels teach the node nothing, and each is counted', () => {
  test.each(attempts)('from $from, IPv$version quoted $what', async ({ place, version, shape }) => {
    const before = await lab.counted();
    const to = of(ADDRESSES.node, version);
    const carried = carriedBy(version);
    const shots = FAR_ENDS[version].map(
      (end, index) => [to, errorAbout(version, end, carried[index]!, shape)] as const,
    );
    await lab.send(place, of(ADDRESSES[place], version), shots);
    expect(lab.learned('node', FAR_ENDS[version])).toEqual({});
    expect(lab.cached('node')).toBe('');
    expect(await lab.counted()).toBe(before + shots.length);
  });

  test.each(VERSIONS)('from the far end’s own address, IPv%s', async (version) => {
    const before = await lab.counted();
    for (const [index, end] of FAR_ENDS[version].entries())
      await lab.send('lan', end, [[of(ADDRESSES.node, version), errorAbout(version, end, carriedBy(version)[index]!)]]);
    expect(lab.learned('node', FAR_ENDS[version])).toEqual({});
    expect(lab.cached('node')).toBe('');
    expect(await lab.counted()).toBe(before + FAR_ENDS[version].length);
  });

  test.each(VERSIONS)('about tunnels whose packets connection tracking knows, IPv%s', async (version) => {
    const own = of(ADDRESSES.node, version);
    const tunnels = carriedBy(version).slice(0, -1);
    for (const [index, { protocol, bytes }] of tunnels.entries())
      await lab.send('node', own, [[FAR_ENDS[version][index]!, bytes]], protocol);
    const before = await lab.counted();
    const shots = tunnels.map((one, index) => [own, errorAbout(version, FAR_ENDS[version][index]!, one)] as const);
    await lab.send('lan', of(ADDRESSES.lan, version), shots);
    expect(lab.learned('node', FAR_ENDS[version])).toEqual({});
    expect(await lab.counted()).toBe(before + shots.length);
  });

  test.each(VERSIONS)('about WireGuard of this node to where a peer has roamed, IPv%s', async (version) => {
    const before = await lab.counted();
    const peer = of(INTERNET, version);
    const shots = SHAPES[version].map(
      (shape) => [of(ADDRESSES.node, version), errorAbout(version, peer, udp(51_822, 40_000), shape)] as const,
    );
    await lab.send('lan', of(ADDRESSES.lan, version), shots);
    expect(lab.learned('node', [peer])).toEqual({});
    // Of IPv6's later fragments the kernel takes nothing.
    expect(await lab.counted()).toBe(before + shots.length - (version === 6 ? 1 : 0));
  });
});

/** Ends when the socket is told that its datagram was too large. */
const SEND_LARGE = `use Socket qw(:all); alarm 10;
my ($problem, $at) = getaddrinfo($ARGV[0], 5301, { flags => AI_NUMERICHOST, socktype => SOCK_DGRAM });
socket(my $s, $at->{family}, SOCK_DGRAM, 17) or die $!; connect($s, $at->{addr}) or die $!;
my $ready = ""; vec($ready, fileno($s), 1) = 1; # what is sent while a neighbor is looked for may be lost
for (1 .. 9) { send($s, "x" x 1400, 0); last if select(my $r = $ready, undef, undef, 1); }`;

const SERVE = `use Socket qw(:all); $| = 1;
socket(my $s, AF_INET6, SOCK_STREAM, 6) or die $!;
bind($s, pack_sockaddr_in6(5301, IN6ADDR_ANY)) or die $!; listen($s, 5) or die $!;
print "ready\\n"; accept(my $c, $s) or die $!; while (sysread($c, my $x, 65536)) {}`;
const CALL = `use Socket qw(:all); alarm 10;
my ($problem, $at) = getaddrinfo($ARGV[0], 5301, { flags => AI_NUMERICHOST, socktype => SOCK_STREAM });
socket(my $s, $at->{family}, SOCK_STREAM, 6) or die $!; connect($s, $at->{addr}) or die $!;
syswrite($s, "x" x 20000); shutdown($s, 1); sysread($s, my $x, 1);`;

describe.each(VERSIONS)('what is no tunnel of ours, IPv%s', (version) => {
  const beyond = of(ADDRESSES.beyond, version); // where tunnels end, too
  const internet = of(INTERNET, version);

  test('a router’s word about UDP of the node to another node is taken', async () => {
    const before = await lab.counted();
    await once(lab.perl('node', SEND_LARGE, beyond), 'exit');
    expect(lab.learned('node', [beyond])).toEqual({ [beyond]: NARROW_BYTES });
    expect(await lab.counted()).toBe(before);
  });

  test('a router’s word about TCP of the node to another node is taken', async () => {
    const before = await lab.counted();
    const server = lab.perl('beyond', SERVE);
    await once(server.stdout!, 'data');
    await once(lab.perl('node', CALL, beyond), 'exit');
    expect(lab.learned('node', [beyond])).toEqual({ [beyond]: NARROW_BYTES });
    expect(await lab.counted()).toBe(before);
  });

  test('VXLAN to what is no far end of ours learns', async () => {
    const before = await lab.counted();
    const to = of(ADDRESSES.node, version);
    await lab.send('lan', of(ADDRESSES.lan, version), [[to, errorAbout(version, internet, udp(50_000, 4789))]]);
    expect(lab.learned('node', [internet])).toEqual({ [internet]: LEARNED[version] });
    expect(await lab.counted()).toBe(before);
  });

  test('a pod hears of a narrow path, also where its packets were masqueraded', async () => {
    const before = await lab.counted();
    await once(lab.perl('pod', SEND_LARGE, internet), 'exit');
    expect(lab.learned('pod', [internet])).toEqual({ [internet]: NARROW_BYTES });
    expect(await lab.counted()).toBe(before);
  });

  test('an error for a pod about a tunnel of its own is forwarded, also out of a tunnel', async () => {
    const before = await lab.counted();
    const pod = of(ADDRESSES.pod, version);
    const other = of(ADDRESSES.overlay, version);
    lab.within(
      'pod',
      'nft',
      `add table inet watch; add counter inet watch errors; add chain inet watch c { type filter hook prerouting priority 0; }; flush chain inet watch c; add rule inet watch c icmp type destination-unreachable counter name errors; add rule inet watch c icmpv6 type packet-too-big counter name errors`,
    );
    const arrived = (): number =>
      Number(/packets (\d+)/.exec(lab.within('pod', 'nft', 'list', 'counter', 'inet', 'watch', 'errors'))![1]);
    const arrivedBefore = arrived();
    const shape = PLAIN;
    const error = tooBig({ version, from: pod, to: other, carried: udp(50_000, 4789), shape }, LEARNED[version]);
    await lab.send('overlay', other, [[pod, error]]);
    expect(arrived()).toBe(arrivedBefore + 1);
    expect(await lab.counted()).toBe(before);
  });
});
