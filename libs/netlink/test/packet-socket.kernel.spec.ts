import { execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { ethernet, gratuitousArp, neighborAdvertisement, routerAdvertisement } from '@unbounded/testing/packets';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createNetns, createRouteSocket, type Netns, openPacketSocket, type RouteSocket } from '../src/index.ts';

const [ARP, IPV6] = [0x0806, 0x86dd];
const [NEAR, FAR] = ['02:00:00:00:00:01', '02:00:00:00:00:02'];
const GROUP = 'ff02::1:ff00:7';

let here: Netns;
let there: Netns;
let net: RouteSocket;
/** Indexes of the two ends of a veth. */
let near: number;
let far: number;

const run = (ns: Netns, ...argv: string[]): string =>
  execFileSync('nsenter', [`--net=${ns.path}`, ...argv], { encoding: 'utf8' });
const indexIn = async (ns: Netns): Promise<number> => {
  await using routes = createRouteSocket({ netnsFd: ns.fd });
  return (await routes.links.get('eth0'))!.index;
};

beforeEach(async () => {
  [here, there] = [createNetns(), createNetns()];
  run(here, 'ip', 'link', 'add', 'eth0', 'address', NEAR, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', there.path);
  for (const ns of [here, there]) run(ns, 'sysctl', '-qw', 'net.ipv6.conf.eth0.disable_ipv6=1');
  run(there, 'ip', 'link', 'set', 'eth0', 'address', FAR, 'up');
  run(here, 'ip', 'link', 'set', 'eth0', 'up');
  [near, far] = [await indexIn(here), await indexIn(there)];
  net = createRouteSocket({ netnsFd: here.fd });
  while ((await net.links.get('eth0'))?.operState !== 'up') await delay(1);
});
afterEach(() => {
  net.close();
  here.close();
  there.close();
});

const open = (etherType?: number, group?: string) =>
  openPacketSocket({ link: near, netnsFd: here.fd, ...(etherType && { etherType }), ...(group && { group }) });
const sender = () => openPacketSocket({ link: far, netnsFd: there.fd });

const listening = (etherType: number) => {
  const frames: Uint8Array[] = [];
  const socket = open(etherType);
  socket.onFrame((frame) => void frames.push(Uint8Array.from(frame)));
  return { socket, frames, [Symbol.dispose]: () => socket.close() };
};
const until = async (holds: () => boolean): Promise<void> => {
  for (const end = performance.now() + 30_000; performance.now() < end && !holds();) await delay(5);
  expect(holds()).toBe(true);
};
const text = (frames: readonly Uint8Array[]): string[] => frames.map((frame) => Buffer.from(frame).toString('hex'));

const refusal = (act: () => unknown): string | undefined => {
  try {
    act();
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
};

/** A frame of ARP of 3,000 bytes, which no socket of ours sends: AF_PACKET, SOCK_RAW. */
const JUMBO = String.raw`
  socket(my $s, 17, 3, 0) or die $!;
  send($s, ("\xff" x 6) . ("\x02" x 6) . "\x08\x06" . ("x" x 3000), 0, pack("S n i S C C a8", 17, 0x0806, $ARGV[0], 1, 0, 6, "\xff" x 6)) or die $!;`;

const arp = gratuitousArp({ mac: FAR, ip: '192.0.2.7' });
const advertisement = neighborAdvertisement({ mac: FAR, ip: '2001:db8::7' });
const tagged = (vlan: number, frame: Uint8Array): Uint8Array =>
  Uint8Array.from([...frame.subarray(0, 12), 0x81, 0, 0, vlan, ...frame.subarray(12)]);

describe('a packet socket', () => {
  test('reads whole frames of its EtherType, and of IPv6 neighbor discovery alone', async () => {
    using arps = listening(ARP);
    using neighbors = listening(IPV6);
    using from = sender();
    const short = ethernet({ to: NEAR, from: FAR, type: IPV6 }, Uint8Array.of(0x60));
    for (const frame of [routerAdvertisement(FAR, 'fe80::2'), short, arp, advertisement]) from.send(frame);
    await until(() => arps.frames.length > 0 && neighbors.frames.length > 0);
    expect(text(arps.frames)).toEqual(text([arp]));
    expect(text(neighbors.frames)).toEqual(text([advertisement]));
  });

  test('reads frames of every length up to 2,048 bytes', async () => {
    for (const ns of [here, there]) run(ns, 'ip', 'link', 'set', 'eth0', 'mtu', '9000');
    using arps = listening(ARP);
    using from = sender();
    // The jumbo frame is passed over, the ones around it are not.
    run(there, 'perl', '-e', JUMBO, String(far));
    const lengths = [14, 15, 16, 17, 60, 1514, 2047, 2048];
    for (const length of lengths) from.send(Uint8Array.from({ length }, (_, at) => arp[at] ?? at));
    await until(() => arps.frames.length === lengths.length);
    expect(arps.frames.map(({ length }) => length)).toEqual(lengths);
    expect([...arps.frames[7]!.subarray(1000, 1003)]).toEqual([1000 & 0xff, 1001 & 0xff, 1002 & 0xff]);
  });

  test('reads nothing that is tagged for a VLAN or for another host, but what is tagged for no VLAN', async () => {
    using arps = listening(ARP);
    using from = sender();
    from.send(Uint8Array.from([2, 0, 0, 0, 0, 9, ...arp.subarray(6)]));
    from.send(tagged(5, arp));
    from.send(tagged(0, arp));
    from.send(advertisement);
    from.send(arp);
    await until(() => arps.frames.length >= 2);
    expect(text(arps.frames)).toEqual(text([arp, arp]));
  });

  test('does not read what it sent itself', async () => {
    using arps = listening(ARP);
    using from = sender();
    arps.socket.send(gratuitousArp({ mac: NEAR, ip: '192.0.2.8' }));
    from.send(arp);
    await until(() => arps.frames.length > 0);
    expect(text(arps.frames)).toEqual(text([arp]));
  });

  test('without an EtherType reads nothing', async () => {
    using arps = listening(ARP);
    using deaf = open();
    let heard = 0;
    deaf.onFrame(() => heard++);
    using from = sender();
    from.send(arp);
    await until(() => arps.frames.length > 0);
    await delay(20);
    expect(heard).toBe(0);
  });

  test('closed by its own handler, hands over no more of what has come', async () => {
    const socket = open(ARP);
    let heard = 0;
    socket.onFrame(() => {
      heard++;
      socket.close();
    });
    using from = sender();
    for (let times = 0; times < 5; times++) from.send(arp);
    await until(() => heard > 0);
    await delay(20);
    expect(heard).toBe(1);
    expect(() => socket.send(arp)).toThrow('what openPacket opened is closed');
    socket.close();
  });

  test('makes the device a member of its group, while it is open', () => {
    run(here, 'sysctl', '-qw', 'net.ipv6.conf.eth0.disable_ipv6=0');
    const groups = (): string => run(here, 'ip', 'maddress', 'show', 'dev', 'eth0');
    const socket = open(IPV6, GROUP);
    expect(groups()).toContain(`inet6 ${GROUP}`);
    expect(groups()).toContain('link  33:33:ff:00:00:07');
    socket.close();
    expect(groups()).not.toContain(GROUP);
    expect(groups()).not.toContain('33:33:ff:00:00:07');
  });

  test('goes on when the device was down, and says while it is', async () => {
    using arps = listening(ARP);
    using from = sender();
    run(here, 'ip', 'link', 'set', 'eth0', 'down');
    expect(() => arps.socket.send(arp)).toThrow(expect.objectContaining({ code: 'ENETDOWN' }));
    // The other end is up and has no carrier.
    await until(() => refusal(() => from.send(arp)) === 'ENETDOWN');
    run(here, 'ip', 'link', 'set', 'eth0', 'up');
    await until(() => refusal(() => from.send(arp)) === undefined);
    await until(() => arps.frames.length > 0);
  });

  test('says that the device is gone', async () => {
    using arps = listening(ARP);
    run(here, 'ip', 'link', 'delete', 'eth0');
    await delay(20);
    expect(refusal(() => arps.socket.send(arp))).toBe('ENODEV');
    expect(refusal(() => open(ARP))).toBe('ENODEV');
  });

  test('is of Ethernet devices, and says what it needs', () => {
    const lo = { link: 1, netnsFd: here.fd };
    expect(() => openPacketSocket(lo)).toThrow('open packet socket: Wrong medium type');
    expect(() => openPacketSocket({ ...lo, link: 0 })).toThrow('link must be an integer within 1..2147483647');
    expect(() => openPacketSocket({ ...lo, etherType: 0x10000 })).toThrow(
      'etherType must be an integer within 0..65535',
    );
    expect(() => open(ARP, '192.0.2.1')).toThrow('group must be an IPv6 multicast address');
    expect(refusal(() => open(ARP, '2001:db8::1'))).toBe('EINVAL');
    using socket = open();
    expect(() => socket.send(arp.subarray(0, 13))).toThrow('frame must have 14 to 2048 bytes');
    expect(() => socket.send(new Uint8Array(2049))).toThrow('frame must have 14 to 2048 bytes');
  });
});
