import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { join } from 'node:path';
import { createEchoEncoder, ECHO_PORTS, TOKEN_BYTES } from '@unbounded/health';
import { groupKey, nexthopGroup } from '@unbounded/bpf-maps';
import { type BpfObject, loadObject, mountBpffs, unmountBpffs } from '@unbounded/libbpf-ts';
import { createRouteSocket, createTun } from '@unbounded/netlink';
import type { EchoPlan } from '@unbounded/topology';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { GroupMap } from '../../data-path/ebpf/map-groups.ts';
import type { Health } from './health.ts';
import type { HealthGroup } from './messages.ts';
import { are, makeNodes, planOf, type TestNode, type TestNodes } from './nodes.scenario.ts';

/**
 * A worker and the two gateways of its pool, whose kernels forward or not while their agents live. A rule of nftables turns the echoes
 * round, as in the netlink data path.
 */

const NAME = 'unbounded_nexthop_groups';
const TUN = 'unbounded-echo';
const FAMILIES = [4, 6] as const;
const OWN = { 4: '10.8.1.0', 6: 'fd08:1::ff' } as const;
const farOf = (gateway: number) => ({ 4: `10.8.${gateway}.0`, 6: `fd08:${gateway}::ff` }) as const;

let world: TestNodes;
let object: BpfObject;
let map: GroupMap;
let bpffs: string;
let device: { readonly name: string; readonly index: number };
let worker: TestNode;
let g1: TestNode;
let g2: TestNode;

const sysctl = (node: TestNode, values: Readonly<Record<string, number>>): void =>
  void node.run('sysctl', '-qw', ...Object.entries(values).map(([key, value]) => `net.${key}=${value}`));
const forward = (node: TestNode, on: boolean): void =>
  sysctl(node, { 'ipv4.ip_forward': Number(on), 'ipv6.conf.all.forwarding': Number(on) });

const makeDevice = async (): Promise<void> => {
  createTun({ name: TUN, netnsFd: worker.netns.fd });
  await using net = createRouteSocket({ netnsFd: worker.netns.fd });
  await net.links.modify(TUN, { up: true });
  device = { name: TUN, index: (await net.links.get(TUN))!.index };
};

const joinByEchoes = async (): Promise<void> => {
  for (const node of [worker, g1, g2]) forward(node, true);
  await makeDevice();
  sysctl(worker, Object.fromEntries(['all', TUN, 'wire'].map((key) => [`ipv4.conf.${key}.rp_filter`, 0])));
  worker.run('nft', 'add table inet echo; add chain inet echo out { type filter hook postrouting priority 110; }');
  for (const family of FAMILIES) {
    const [ip, own] = [family === 4 ? 'ip' : 'ip6', OWN[family]];
    const route = (node: TestNode, ...argv: string[]): string => node.run('ip', `-${family}`, 'route', 'add', ...argv);
    worker.run('nft', `add rule inet echo out iifname ${TUN} ${ip} saddr ${own} ${ip} daddr set ${own}`);
    route(worker, own, 'dev', TUN);
    for (const [index, gateway] of [g1, g2].entries()) {
      route(worker, farOf(index + 2)[family], 'via', gateway.addresses[family]);
      route(gateway, own, 'via', worker.addresses[family]);
    }
  }
};

beforeEach(async () => {
  world = makeNodes('worker', 'g1', 'g2');
  [worker, g1, g2] = world.nodes as [TestNode, TestNode, TestNode];
  bpffs = join(world.folder, 'bpf');
  mountBpffs(bpffs);
  const bytes = readFileSync(join(import.meta.dirname, '../../../../../bpf/build/unbounded_encap.bpf.o'));
  object = loadObject(bytes, { name: 'health', maps: { [NAME]: { pinPath: join(bpffs, NAME) } } });
  map = object.map(NAME, groupKey, nexthopGroup);
  await joinByEchoes();
});
afterEach(async () => {
  map.close();
  object.close();
  unmountBpffs(bpffs);
  await world[Symbol.asyncDispose]();
});

const group: HealthGroup = {
  name: 'pool/edge/4',
  index: 7,
  family: 4,
  members: ['g1', 'g2'].map((node, at) => ({
    node,
    tier: 0,
    record: { remote: `192.0.2.${at + 1}`, vni: 1, ifindex: 5, protocol: 'vxlan', setKey: true, healthy: true },
  })),
};
const echoes = (): EchoPlan[] =>
  [g1, g2].flatMap(({ name: node }, index) =>
    FAMILIES.map((family): EchoPlan => ({
      ...{ node, family, localAddress: OWN[family], address: farOf(index + 2)[family] },
      via: { protocol: 'WireGuard', node, device: 'wire' },
    })),
  );
const startWorker = () =>
  worker
    .start(join(bpffs, NAME))
    .apply(planOf(worker, [g1, g2], { groups: [group], echoes: echoes(), echoDevice: device }));
const startAll = async (): Promise<void> => {
  await Promise.all([startWorker(), ...[g1, g2].map((gateway) => gateway.start().apply(planOf(gateway, [worker])))]);
  await worker.until(are('Healthy'));
};
const weights = () => map.get(7)?.map(({ weight }) => weight);
const weightsAre =
  (...wanted: number[]) =>
  () =>
    String(weights()) === String(wanted);
/** What is known of whether gateways forward, in both families. */
const forwardsAre =
  (wanted: Readonly<Record<string, boolean>>) =>
  (health: Health): boolean =>
    health.states().every(({ node, forwards }) => forwards === wanted[node]);
const metric = async (name: string): Promise<number> => {
  const lines = (await worker.metrics.render()).split('\n').filter((line) => line.startsWith(name));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
};

test('a gateway that lives and does not forward leaves its groups, and comes back to them', async () => {
  await startAll();
  await worker.until(forwardsAre({ g1: true, g2: true }));
  forward(g1, false);
  const took = await Promise.race([worker.until(weightsAre(0, 1)), delay(5000, Infinity)]);
  console.log(`g1 left the group after ${Math.round(took)} ms`);
  expect(took).toBeLessThan(1000);
  await worker.until(forwardsAre({ g1: false, g2: true }));
  expect(are('Healthy')(worker.health)).toBe(true); // its agent answers all the time
  await g1.until((health) => health.states().every(({ missesEchoes }) => missesEchoes === 'here'));
  forward(g1, true);
  await worker.until(weightsAre(1, 1));
  await g1.until((health) => health.states().every(({ missesEchoes }) => missesEchoes === undefined));
});

test('the last gateways stay in their groups when none of them forwards, and are told', async () => {
  await startAll();
  for (const gateway of [g1, g2]) forward(gateway, false);
  await worker.until(forwardsAre({ g1: false, g2: false }));
  await g2.until((health) => health.states().every(({ missesEchoes }) => missesEchoes === 'all'));
  // Beside four other specs a probe may be lost at this very moment, and its gateway out for as long.
  await worker.until(weightsAre(1, 1));
  expect(forwardsAre({ g1: false, g2: false })(worker.health)).toBe(true);
});

test('a gateway that does not forward is not used again because nothing is heard of the other one either', async () => {
  await startAll();
  forward(g1, false);
  await worker.until(forwardsAre({ g1: false, g2: true }));
  await delay(1000); // longer than it takes to see that g2's come back all the same
  // As above: g2 may be out at one moment. A worker that takes g1 back does so for as long as it does not forward.
  for (const forwards of [false, true]) {
    forward(worker, forwards);
    await worker.until(forwardsAre({ g1: false, g2: forwards }));
    await worker.until(weightsAre(0, 1));
    expect(forwardsAre({ g1: false, g2: forwards })(worker.health)).toBe(true);
  }
});

test('a worker that does not forward itself loses all of its echoes, and no gateway', async () => {
  await startAll();
  forward(worker, false);
  await worker.until(forwardsAre({ g1: false, g2: false }));
  expect(weights()).toEqual([1, 1]);
});

test('an agent that starts anew does not use a gateway that did not forward before', async () => {
  await startAll();
  forward(g1, false);
  await worker.until(forwardsAre({ g1: false, g2: true }));
  await worker.health.stop();
  await startWorker();
  expect(weights()).toEqual([0, 1]);
});

test('the device is taken up again when it was made anew, and echoes end without it', async () => {
  await startAll();
  worker.run('ip', 'link', 'delete', TUN);
  await worker.health.apply(planOf(worker, [g1, g2], { groups: [group] }));
  expect(worker.health.states().map(({ forwards }) => forwards)).toEqual([undefined, undefined, undefined, undefined]);
  await makeDevice();
  for (const family of FAMILIES) worker.run('ip', `-${family}`, 'route', 'replace', OWN[family], 'dev', TUN);
  await worker.health.apply(planOf(worker, [g1, g2], { groups: [group], echoes: echoes(), echoDevice: device }));
  const before = await metric('unbounded_health_echoes_returned_total');
  await worker.until(forwardsAre({ g1: true, g2: true }));
  while ((await metric('unbounded_health_echoes_returned_total')) < before + 4) await worker.until(() => true);
});

test('a gateway that is planned no more, but for its echoes, is nobody’s concern', async () => {
  await startAll();
  await worker.health.apply(planOf(worker, [g2], { groups: [group], echoes: echoes(), echoDevice: device }));
  forward(g1, false);
  await delay(1000);
  expect(worker.health.states().map(({ node, forwards }) => [node, forwards])).toEqual([
    ['g2', true],
    ['g2', true],
  ]);
  await expect(worker.health.apply(planOf(worker, [g2], { groups: [group] }))).resolves.toEqual([]);
});

describe('a gateway that forges echoes', () => {
  /** Raw IPv4 packets from standard input, in hexadecimal, to the worker. */
  const SEND = `use Socket; socket(my $s, AF_INET, SOCK_RAW, 255) or die $!;
    while (my $line = <STDIN>) { chomp $line; send($s, pack('H*', $line), 0, pack_sockaddr_in(0, inet_aton('${OWN[4]}'))) or die $!; }`;
  /** The first echo of IPv4 that comes by, as it came. */
  const TAKE_ONE = `socket(my $s, 17, 3, 0x0008) or die $!;
    while (1) { recv($s, my $frame, 2000, 0); my $ip = substr($frame, 14);
      if (length($ip) == 68 && substr($ip, 22, 2) eq pack('n', ${ECHO_PORTS.destination})) { print unpack('H*', $ip); exit } }`;
  const shoot = (from: TestNode, packets: readonly Uint8Array[]): void =>
    void from.feed(packets.map((packet) => Buffer.from(packet).toString('hex')).join('\n'), 'perl', '-e', SEND);
  const forged = (id: number, sequence: bigint): Uint8Array =>
    createEchoEncoder({ source: OWN[4], destination: OWN[4] })({ id, sequence, token: new Uint8Array(TOKEN_BYTES) });
  const rejected = (why: string): Promise<number> =>
    metric(`unbounded_health_probes_rejected_total{reason="echo_${why}"}`);
  const untilRejected = async (why: string, count: number): Promise<void> => {
    while ((await rejected(why)) < count) await worker.until(() => true);
  };

  test('is not believed, and what it sends is counted', async () => {
    await startAll();
    forward(g1, false);
    await worker.until(forwardsAre({ g1: false, g2: true }));
    // Of each of the four sessions all sequences that it can have used by now.
    const guesses = Array.from({ length: 400 }, (_, index) => forged(1 + (index % 4), BigInt(index >> 2)));
    const otherPorts = forged(1, 1n);
    otherPorts[23] = ECHO_PORTS.source & 0xff;
    shoot(g1, [...guesses, otherPorts, forged(1, 1n).subarray(0, 60), forged(9, 1n)]);
    await untilRejected('token', 4);
    await untilRejected('ports', 1);
    expect((await rejected('token')) + (await rejected('unexpected'))).toBeGreaterThan(100);
    expect(forwardsAre({ g1: false, g2: true })(worker.health)).toBe(true);
    expect(weights()).toEqual([0, 1]);
  });

  test('gains nothing by sending one again that it has returned', async () => {
    await startAll();
    const taken = Buffer.from(g1.run('perl', '-e', TAKE_ONE), 'hex');
    forward(g1, false);
    await worker.until(forwardsAre({ g1: false, g2: true }));
    for (let round = 0; round < 5; round++) {
      shoot(
        g1,
        Array.from({ length: 20 }, () => taken),
      );
      await worker.until(() => true);
    }
    await untilRejected('unexpected', 99);
    expect(forwardsAre({ g1: false, g2: true })(worker.health)).toBe(true);
  });

  test('keeps the worker from nothing when it floods', async () => {
    await startAll();
    shoot(
      g1,
      Array.from({ length: 20_000 }, () => forged(1, 1n)),
    );
    expect(are('Healthy')(worker.health)).toBe(true);
    expect(weights()).toEqual([1, 1]);
  });
});
