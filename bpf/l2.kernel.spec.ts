import { macBytes } from '@unbounded/ip';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { createNetns, createRouteSocket, openPacketSocket, type PacketSocket } from '@unbounded/netlink';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { arp, BROADCAST, NOBODY, packet, TYPE } from './l2-frames.ts';
import { addNode, addPod, announce, type Node, type Pod, run, runs } from './l2-lan.ts';
import { MTU, NETWORK, SEGMENT } from './l2-switch.ts';

/** Two nodes, joined by a wire on which nothing is segmented; two pods on the one, one on the other. */

let a: Node;
let b: Node;
let near: Pod;
let mate: Pod;
let far: Pod;

beforeAll(async () => {
  execFileSync(new URL('build.sh', import.meta.url).pathname, { stdio: 'inherit' });
  const [nsA, nsB] = [createNetns(), createNetns()];
  await using net = createRouteSocket({ netnsFd: nsA.fd });
  await net.links.create({ name: 'wire', kind: { kind: 'veth', peer: { name: 'wire', netnsFd: nsB.fd } } });
  a = await addNode(nsA, { name: 'wire', own: 'fd00:99::1', other: 'fd00:99::2' }, [1, 2]);
  b = await addNode(nsB, { name: 'wire', own: 'fd00:99::2', other: 'fd00:99::1' }, [2, 1]);
  // The nodes are to know each other's MACs before a test counts packets.
  run(a.ns, 'ping -c3 -i0.2 fd00:99::2');
  run(b.ns, 'ping -c1 fd00:99::1');
  [near, mate, far] = [await addPod(a, 1), await addPod(a, 2), await addPod(b, 3)];
});
beforeEach(() => {
  announce([a, b], [near, mate, far]);
  for (const { l2 } of [a, b]) l2.networks.set(NETWORK, { mtu: MTU });
});
afterAll(() => [near, mate, far, a, b].forEach((each) => each[Symbol.dispose]()));

const ping = (from: Pod, to: string, ...more: string[]): boolean =>
  runs(from.ns, ['ping', '-c2', '-i0.1', '-W1', ...more, to].join(' ')).passed;

test.each<[string, () => [Pod, Pod]]>([
  ['on the same node', () => [near, mate]],
  ['on another node', () => [near, far]],
  ['from another node', () => [far, mate]],
])('a pod %s is reached by IPv4 and IPv6', (_, pods) => {
  const [from, to] = pods();
  expect([ping(from, to.ipv4), ping(from, to.ipv6)]).toEqual([true, true]);
});

/** Frames of that type that a pod gets. */
const listen = (pod: Pod, etherType: number): { readonly frames: Uint8Array[]; readonly socket: PacketSocket } => {
  const socket = openPacketSocket({ link: pod.inside, etherType, netnsFd: pod.ns.fd });
  const frames: Uint8Array[] = [];
  socket.onFrame((frame) => void frames.push(frame));
  return { frames, socket };
};

const until = async (condition: () => boolean): Promise<void> => {
  for (const end = performance.now() + 5000; performance.now() < end && !condition();) await delay(20);
};
/** In which nothing came that would have come. */
const WHILE_MS = 300;

/** Inner frames of ARP on the wire: the type behind the outer IPv6 header and two MACs. */
const captureArp = async () => {
  const filter = 'ip6 proto 143 and ip6[52:2] = 0x0806';
  const capture = spawn('nsenter', [`--net=${b.ns.path}`, 'tcpdump', '-lnqi', 'wire', filter]);
  onTestFinished(() => void capture.kill('SIGKILL'));
  let text = '';
  capture.stdout.on('data', (data: Buffer) => void (text += data.toString()));
  const count = (): number => text.split('\n').filter(Boolean).length;
  const ended = once(capture, 'close');
  for await (const line of createInterface({ input: capture.stderr })) if (line.includes('listening on')) break;
  capture.stderr.resume();
  return {
    count,
    async end(): Promise<number> {
      capture.kill('SIGINT');
      await ended;
      return count();
    },
  };
};

test('ARP is answered where it is asked: there is none on the wire, until an address is announced', async () => {
  const before = a.l2.counts().answered_arp ?? 0;
  run(near.ns, 'ip neigh flush dev eth0');
  const quiet = await captureArp();
  expect(ping(near, far.ipv4)).toBe(true);
  await delay(WHILE_MS);
  expect(await quiet.end()).toBe(0);
  expect(a.l2.counts().answered_arp ?? 0).toBeGreaterThan(before);

  const announcement = { operation: 1, senderMac: near.mac, sender: near.ipv4, target: near.ipv4 };
  using socket = openPacketSocket({ link: near.inside, netnsFd: near.ns.fd });
  const loud = await captureArp();
  socket.send(arp({ from: near.mac, to: BROADCAST }, announcement));
  await until(() => loud.count() > 0);
  await delay(WHILE_MS);
  expect(await loud.end()).toBe(1);
});

test('a broadcast comes to every other pod once, and not back', async () => {
  for (const { l2 } of [a, b]) l2.networks.set(NETWORK, { mtu: MTU, broadcast: true });
  const [atNear, atMate, atFar] = [near, mate, far].map((pod) => listen(pod, TYPE.arp));
  const request = { operation: 1, senderMac: near.mac, sender: near.ipv4, targetMac: NOBODY, target: '10.9.0.200' };
  const sent = arp({ from: near.mac, to: BROADCAST }, request);
  const same = ({ frames }: { readonly frames: readonly Uint8Array[] }): number =>
    frames.filter((frame) => Buffer.from(frame.subarray(0, sent.length)).equals(sent)).length;
  using socket = openPacketSocket({ link: near.inside, netnsFd: near.ns.fd });
  socket.send(sent);
  await until(() => same(atMate!) > 0 && same(atFar!) > 0);
  await delay(WHILE_MS);
  expect([same(atNear!), same(atMate!), same(atFar!)]).toEqual([0, 1, 1]);
  for (const { socket: each } of [atNear!, atMate!, atFar!]) each.close();
});

test('a broadcast stays out of a segment that the sender may not reach', async () => {
  for (const { l2 } of [a, b]) l2.networks.set(NETWORK, { mtu: MTU, broadcast: true });
  const port = { network: NETWORK, rate: 1000, burst: 100 };
  b.l2.ports.set(far.port, { ...port, segment: SEGMENT + 1, mac: far.mac });
  const [atMate, atFar] = [mate, far].map((pod) => listen(pod, TYPE.arp));
  using socket = openPacketSocket({ link: near.inside, netnsFd: near.ns.fd });
  const sent = arp(
    { from: near.mac, to: BROADCAST },
    { operation: 1, senderMac: near.mac, sender: near.ipv4, target: near.ipv4 },
  );
  socket.send(sent);
  await until(() => atMate!.frames.length > 0);
  await delay(WHILE_MS);
  expect([atMate!.frames.length, atFar!.frames.length]).toEqual([1, 0]);
  expect([...atMate!.frames[0]!.subarray(6, 12)]).toEqual([...macBytes(near.mac)]);
  b.l2.ports.set(far.port, { ...port, segment: SEGMENT, mac: far.mac });
  for (const { socket: each } of [atMate!, atFar!]) each.close();
});

test('a pod that takes another’s address reaches nobody', () => {
  run(near.ns, 'ip addr add 10.9.0.77/24 dev eth0');
  const before = a.l2.counts().drop_forged_address ?? 0;
  expect(ping(near, far.ipv4, '-I', '10.9.0.77')).toBe(false);
  run(near.ns, 'ip addr del 10.9.0.77/24 dev eth0');
  expect((a.l2.counts().drop_forged_address ?? 0) + (a.l2.counts().drop_forged_arp ?? 0)).toBeGreaterThan(before);
});

test('a frame into which a device would write is dropped, unless it is the checksum that is left to it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'l2-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const sender = join(folder, 'frame-socket');
  const source = new URL('../apps/node-dataplane/src/attachment/source-guard/frame-socket.c', import.meta.url).pathname;
  execFileSync('gcc', ['-O2', '-Wall', '-Werror', '-o', sender, source]);
  run(near.ns, 'ethtool -K eth0 tx on'); // as NET_ADMIN may
  onTestFinished(() => void run(near.ns, 'ethtool -K eth0 tx off'));
  const frame = Buffer.from(packet({ from: near.mac, to: far.mac }, { source: near.ipv4, destination: far.ipv4 }));
  const send = (place: string) => {
    const before = a.l2.counts();
    const argv = [`--net=${near.ns.path}`, sender, 'send', 'eth0'];
    execFileSync('nsenter', argv, { input: `@${place} ${frame.toString('hex')}\n` });
    const after = a.l2.counts();
    const more = (reason: 'drop_malformed' | 'encapsulated') => (after[reason] ?? 0) - (before[reason] ?? 0);
    return [more('encapsulated'), more('drop_malformed')];
  };
  const [udp, port, checksum] = [14 + 20, 2, 6];
  expect(send(`${udp}+${port}`)).toEqual([0, 1]);
  expect(send(`${udp}+${checksum}`)).toEqual([1, 0]);
});

test('a node brings nothing in the name of another’s endpoint', () => {
  b.l2.fdb.set({ network: NETWORK, mac: near.mac }, { locator: 'fd00:cafe:0:9::', segment: SEGMENT, sequence: 0n });
  expect(ping(near, far.ipv4)).toBe(false);
  expect(b.l2.counts().drop_forged_node).toBeGreaterThan(0);
});

test('a packet longer than the MTU is answered with the MTU', () => {
  run(near.ns, 'ip link set eth0 mtu 1500');
  expect(runs(near.ns, `ping -c1 -W1 -M do -s 1400 ${far.ipv4}`).output).toMatch(`mtu = ${MTU}`);
  expect(runs(near.ns, `ping -6 -c1 -W1 -M do -s 1400 ${far.ipv6}`).output).toMatch(/Packet too big: mtu=1366/);
  run(near.ns, `ip link set eth0 mtu ${MTU}`);
});

test('16 MiB of TCP arrive whole', async () => {
  const bytes = 16 << 20;
  const receive = `let n = 0; require('node:net').createServer((s) => s.on('data', (d) => n += d.length)
    .on('end', () => { console.log(n); process.exit(); })).listen(5000, '${far.ipv4}', () => console.log('listens'))`;
  const send = `require('node:net').connect(5000, '${far.ipv4}').end(Buffer.alloc(${bytes}, 7))`;
  const server = spawn('nsenter', [`--net=${far.ns.path}`, process.execPath, '-e', receive]);
  await once(server.stdout, 'data');
  let text = '';
  server.stdout.on('data', (data: Buffer) => void (text += data.toString()));
  execFileSync('nsenter', [`--net=${near.ns.path}`, process.execPath, '-e', send], { timeout: 20_000 });
  await once(server, 'close');
  expect(Number(text)).toBe(bytes);
  expect(a.l2.counts().drop_superpacket).toBeUndefined();
});
