import { execFileSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  createNetns,
  createRouteSocket,
  createTun,
  type Netns,
  openTun,
  openUdp,
  type RouteSocket,
} from '../src/index.ts';

const NAME = 'tun-test';
const [NODE, BEHIND] = ['192.0.2.1', '192.0.2.9'];

let ns: Netns;
let net: RouteSocket;
let socket: Socket;
beforeEach(async () => {
  ns = createNetns();
  net = createRouteSocket({ netnsFd: ns.fd });
  createTun({ name: NAME, netnsFd: ns.fd });
  const link = (await net.links.get(NAME))!;
  await net.links.modify('lo', { up: true });
  await net.links.modify(link.index, { up: true });
  await net.addresses.replace({ link: link.index, address: `${NODE}/24` });
  socket = createSocket('udp4');
  socket.bind({ fd: openUdp({ address: NODE, port: 4000, netnsFd: ns.fd }) });
});
afterEach(async () => {
  socket.close();
  net.close();
  ns.close();
});

/** UDP without a checksum, from behind the device to the node. */
const datagram = (text: string): Uint8Array => {
  const payload = Buffer.from(text);
  const packet = Buffer.alloc(28 + payload.length);
  packet.set([
    0x45,
    0,
    0,
    packet.length,
    0,
    0,
    0x40,
    0,
    64,
    17,
    0,
    0,
    ...[BEHIND, NODE].flatMap((ip) => ip.split('.').map(Number)),
  ]);
  let sum = 0;
  for (let at = 0; at < 20; at += 2) sum += packet.readUInt16BE(at);
  packet.writeUInt16BE(~((sum & 0xffff) + (sum >>> 16)) & 0xffff, 10);
  packet.writeUInt16BE(5000, 20);
  packet.writeUInt16BE(4000, 22);
  packet.writeUInt16BE(8 + payload.length, 24);
  packet.set(payload, 28);
  return packet;
};

const isUdp = (packet: Uint8Array): boolean => packet[0] === 0x45 && packet[9] === 17;

/** Over the addresses, the protocol and UDP with its checksum: 0xffff when that is right. */
const udpSum = (packet: Uint8Array): number => {
  const padded = Buffer.concat([
    packet.subarray(12),
    new Uint8Array(packet.length % 2),
    Uint8Array.of(0, 17, 0, packet.length - 20),
  ]);
  let sum = 0;
  for (let at = 0; at < padded.length; at += 2) sum += padded.readUInt16BE(at);
  return (sum & 0xffff) + (sum >>> 16);
};

/** TUNSETIFF as we do; TUNSETVNETHDRSZ 12; TUNSETOFFLOAD TUN_F_CSUM. */
const LEAVE_SETTINGS = String.raw`
  my ($device, $size) = (pack('a16 S x22', $ARGV[0], 0x5001), pack('i', 12));
  open(my $tun, '+<', '/dev/net/tun') or die $!;
  ioctl($tun, 0x400454ca, $device) or die $!;
  ioctl($tun, 0x400454d8, $size) or die $!;
  ioctl($tun, 0x400454d0, 1) or die $!;`;

const until = async (holds: () => boolean): Promise<void> => {
  for (const end = performance.now() + 30_000; performance.now() < end && !holds();) await delay(5);
  expect(holds()).toBe(true);
};

const attach = () => {
  const packets: Uint8Array[] = [];
  const tun = openTun({ name: NAME, netnsFd: ns.fd, onPacket: (packet) => void packets.push(Uint8Array.from(packet)) });
  /** UDP payloads that left by the device. */
  const texts = (): string[] => packets.filter(isUdp).map((packet) => Buffer.from(packet.subarray(28)).toString());
  return { tun, packets, texts, [Symbol.dispose]: () => tun.close() };
};

/** A moment after somebody attaches the kernel sees it; until then it drops what it would send out. */
const attached = async () => {
  const end = attach();
  await sends();
  return end;
};
const sends = async (): Promise<void> => {
  while ((await net.links.get(NAME))?.operState !== 'up') await delay(1);
};

describe('a TUN', () => {
  test('takes packets in as if they came by the device', async () => {
    using end = attach();
    const received = once(socket, 'message') as Promise<[Buffer, { address: string }]>;
    expect(end.tun.inject(datagram('in'))).toBe(0);
    const [bytes, from] = await received;
    expect([bytes.toString(), from.address]).toEqual(['in', BEHIND]);
  });

  test('gives what the kernel sends out by it, whole and in order, but nothing that is too long', async () => {
    using end = await attached();
    for (const text of ['a', 'b'.repeat(484), 'c'.repeat(485), 'd'.repeat(1400), 'e']) socket.send(text, 5000, BEHIND);
    await until(() => end.texts().at(-1) === 'e');
    expect(end.texts()).toEqual(['a', 'b'.repeat(484), 'e']);
  });

  test('gives bursts that are longer than one reading', async () => {
    await net.links.modify(NAME, { txQueuePackets: 2000 });
    using end = await attached();
    const sent = Array.from({ length: 1000 }, (_, index) => String(index));
    for (const text of sent) socket.send(text, 5000, BEHIND);
    await until(() => end.texts().length === sent.length);
    expect(end.texts()).toEqual(sent);
  });

  test('refuses what is no packet by name', () => {
    using end = attach();
    expect(() => end.tun.inject(new Uint8Array(0))).toThrow('packet must have 1 to 512 bytes');
    expect(() => end.tun.inject(new Uint8Array(513))).toThrow('packet must have 1 to 512 bytes');
    expect(end.tun.inject(new Uint8Array(1))).not.toBe(0);
  });

  test('has one process attached at a time, and stays when it leaves', () => {
    using first = attach();
    expect(attach).toThrow(expect.objectContaining({ code: 'EBUSY' }));
    first.tun.close();
    first.tun.close();
    expect(() => first.tun.inject(datagram('late'))).toThrow('is closed');
  });

  test('can be attached to again as soon as it was closed, also by who is being given a packet', async () => {
    attach().tun.close();
    let again: ReturnType<typeof attach> | undefined;
    const first = openTun({
      name: NAME,
      netnsFd: ns.fd,
      onPacket() {
        first.close();
        again ??= attach();
      },
    });
    await sends();
    socket.send('out', 5000, BEHIND);
    await until(() => again !== undefined);
    using end = again!;
    await sends();
    expect(end.tun.inject(datagram('again'))).toBe(0);
    socket.send('and out', 5000, BEHIND);
    await until(() => end.texts().includes('and out'));
  });

  test('takes nothing in while it is down', async () => {
    using end = attach();
    await net.links.modify(NAME, { up: false });
    expect(end.tun.inject(datagram('down'))).toBe(constants.errno.EIO);
    await net.links.modify(NAME, { up: true });
    const received = once(socket, 'message') as Promise<[Buffer]>;
    expect(end.tun.inject(datagram('up'))).toBe(0);
    expect((await received)[0].toString()).toBe('up');
  });

  test('is read as it was made, whatever an earlier process has set', async () => {
    execFileSync('nsenter', [`--net=${ns.path}`, 'perl', '-e', LEAVE_SETTINGS, NAME]);
    using end = await attached();
    socket.send('out', 5000, BEHIND);
    await until(() => end.texts().includes('out'));
    expect(end.packets.filter(isUdp).map(udpSum)).toEqual([0xffff]);
    const received = once(socket, 'message') as Promise<[Buffer]>;
    expect(end.tun.inject(datagram('in'))).toBe(0);
    expect((await received)[0].toString()).toBe('in');
  });

  test('is not made by attaching to it', async () => {
    for (const name of ['absent', 'lo'])
      expect(() => openTun({ name, netnsFd: ns.fd, onPacket: () => undefined })).toThrow('attach to TUN');
    expect((await net.links.list()).map(({ name }) => name).sort()).toEqual(['lo', NAME]);
  });

  test('that is deleted says so, and keeps no processor busy', async () => {
    using end = attach();
    await net.links.delete(NAME);
    const before = process.cpuUsage();
    await delay(300);
    const { user, system } = process.cpuUsage(before);
    expect(user + system).toBeLessThan(150_000);
    expect(end.tun.inject(datagram('gone'))).not.toBe(0);
  });

  test('is given up by a thread that ends without closing it', async () => {
    const code = `import { openTun } from '${new URL('../src/index.ts', import.meta.url).href}';
      globalThis.tun = openTun({ name: '${NAME}', netnsFd: ${ns.fd}, onPacket() {} });
      const { parentPort } = await import('node:worker_threads'); parentPort.postMessage('open');`;
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
    await once(worker, 'message');
    expect(attach).toThrow(expect.objectContaining({ code: 'EBUSY' }));
    await worker.terminate();
    using end = attach();
    expect(end.tun.inject(datagram('mine'))).toBe(0);
  });
});
