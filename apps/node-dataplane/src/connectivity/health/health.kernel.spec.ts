import { createSocket } from 'node:dgram';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openUdp } from '@unbounded/netlink';
import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';
import { are, INTERVAL_MS, makeNodes, planOf, PORT, type TestNode, type TestNodes } from './nodes.scenario.ts';

/** Two nodes that probe each other. */

let world: TestNodes;
let a: TestNode;
let b: TestNode;

beforeEach(() => {
  world = makeNodes('a', 'b');
  [a, b] = world.nodes as [TestNode, TestNode];
});
afterEach(() => world[Symbol.asyncDispose]());

const both = (): [TestNode, TestNode][] => [
  [a, b],
  [b, a],
];
const startBoth = async (): Promise<void> => {
  for (const [node, peer] of both()) await node.start().apply(planOf(node, [peer]));
  await Promise.all([a.until(are('Healthy')), b.until(are('Healthy'))]);
};
const socketOf = (netnsFd: number, address: string, port = PORT) =>
  createSocket('udp4').bind({ fd: openUdp({ address, port, netnsFd }) });

test('both ends see a path go and come back, in both families, also when only one direction is cut', async () => {
  await startBoth();
  const blockedMs = performance.now();
  b.block('udp', 'dport', String(PORT)); // b hears nothing: neither requests nor replies
  const took = await Promise.all(
    [a, b].map(async (node) => {
      await node.until(are('Unhealthy'));
      return performance.now() - blockedMs;
    }),
  );
  console.log(`found after ${took.map(Math.round).join(' and ')} ms at ${INTERVAL_MS} ms x 3`);
  expect(Math.min(...took)).toBeGreaterThan(2 * INTERVAL_MS - 50);
  b.unblock();
  await Promise.all([a.until(are('Healthy')), b.until(are('Healthy'))]);
  await vi.waitFor(async () =>
    expect(await a.metrics.render()).toContain('unbounded_health_peers{family="6",state="Healthy"} 1'),
  );
  const [text, states] = [await a.metrics.render(), a.health.states()];
  expect(text).toContain('unbounded_health_transitions_total{from="Degraded",to="Unhealthy"} 2');
  expect(states.every(({ rttMs }) => rttMs! > 0 && rttMs! < 1000)).toBe(true);
});

test('a restarted thread goes on from the verdicts of the one before', async () => {
  await startBoth();
  await a.health.stop();
  await a.start().apply(planOf(a, [b]));
  expect(are('Healthy')(a.health)).toBe(true);
  await a.until((health) => health.states().every(({ rttMs }) => rttMs !== undefined)); // b has answered the new thread
  a.block('udp', 'dport', String(PORT));
  await a.until(are('Unhealthy'));
  await a.health.stop();
  await a.start().apply(planOf(a, [b]));
  expect(are('Unhealthy')(a.health)).toBe(true);
});

test('peers whose agents start anew at the same time, one later than the other, stay healthy', async () => {
  await startBoth();
  await Promise.all([a.health.stop(), b.health.stop()]);
  await a.start().apply(planOf(a, [b]));
  await delay(10 * INTERVAL_MS); // far more than it takes to give up a peer
  expect(are('Healthy')(a.health)).toBe(true);
  await b.start().apply(planOf(b, [a]));
  await a.until((health) => health.states().every(({ rttMs }) => rttMs !== undefined));
  expect(await a.metrics.render()).not.toMatch(/to="Unhealthy"\} [1-9]/);
});

test('a peer that never answers stays New, and one that is planned no more is forgotten', async () => {
  await a.start().apply(planOf(a, [b]));
  expect(are('New')(a.health)).toBe(true);
  await a.health.apply(planOf(a, [b], { probes: [] }));
  expect(a.health.states()).toEqual([]);
});

test('peers that are off do not delay the probes of those that answer', async () => {
  await startBoth();
  const [probe] = planOf(a, [b]).probes;
  // At addresses of the switch that nobody has: the kernel keeps their probes until it gives up asking for a MAC address.
  const off = Array.from({ length: 40 }, (_, index) => ({
    ...probe!,
    node: `off-${index}`,
    publicKey: publicKeyOf(generatePrivateKey()),
    address: `10.9.0.${100 + index}`,
  }));
  await a.health.apply(planOf(a, [b], { probes: [...planOf(a, [b]).probes, ...off] }));
  await delay(6000); // twice what the kernel asks
  expect(are('Healthy', 'b')(a.health)).toBe(true);
  expect(are('New', 'off-0', 'off-39')(a.health)).toBe(true);
  expect(await a.metrics.render()).not.toMatch(/to="Unhealthy"\} [1-9]/);
});

test('a peer whose key is of no use is told of', async () => {
  const { probes } = planOf(a, [b]);
  const nobody = Buffer.alloc(32).toString('base64'); // a point that gives everybody the same secret
  const problems = await a.start().apply(planOf(a, [b], { probes: [{ ...probes[0]!, publicKey: nobody }] }));
  expect(problems).toEqual([{ reason: 'ProbeFailed', message: expect.stringContaining('node b cannot be probed') }]);
});

/** What a node counted as rejected for a reason, once there is any; measurements come every second. */
const rejected = (node: TestNode, reason: string): Promise<number> =>
  vi.waitFor(
    async () => {
      const text = await node.metrics.render();
      return Number(new RegExp(`rejected_total\\{reason="${reason}"\\} (\\d+)`).exec(text)![1]);
    },
    { timeout: 5000, interval: 20 },
  );

test('packets that are forged, from strangers or no probes are counted, and none is answered', async () => {
  a.run('ip', 'addr', 'add', '10.9.0.66/24', 'dev', 'wire');
  await b.start().apply(planOf(b, [a]));
  const socket = socketOf(a.netns.fd, a.addresses[4]);
  const stranger = socketOf(a.netns.fd, '10.9.0.66');
  const replies: Buffer[] = [];
  stranger.on('message', (bytes: Buffer) => replies.push(bytes));
  const asked = new Promise<Buffer>((resolve) =>
    socket.on('message', (bytes: Buffer) => {
      if (bytes[5] === 1) resolve(bytes);
      else replies.push(bytes);
    }),
  );
  try {
    const request = await asked;
    const forged = Buffer.from(request);
    forged[20] = forged[20]! ^ 1;
    socket.send(request, PORT, b.addresses[4]); // b's own, sent back: not made with the key of its peer
    socket.send(forged, PORT, b.addresses[4]);
    socket.send('hello', PORT, b.addresses[4]);
    stranger.send(request, PORT, b.addresses[4]);
    expect(await rejected(b, 'mac')).toBe(2);
    expect(await rejected(b, 'length')).toBe(1);
    expect(await rejected(b, 'unknown')).toBe(1);
    expect(replies).toEqual([]);
  } finally {
    socket.close();
    stranger.close();
  }
});

test('a request that is sent again is not answered again', async () => {
  const replies: Buffer[] = [];
  await a.start().apply(planOf(a, [b]));
  const wire = socketOf(b.netns.fd, b.addresses[4]);
  const request = await new Promise<Buffer>((resolve) => wire.once('message', resolve));
  wire.close();
  await a.health.stop();
  await b.start().apply(planOf(b, [a]));
  const again = socketOf(a.netns.fd, a.addresses[4]);
  try {
    again.on('message', (bytes: Buffer) => void (bytes[5] === 2 && replies.push(bytes)));
    for (let copy = 0; copy < 3; copy++) again.send(request, PORT, b.addresses[4]);
    expect(await rejected(b, 'replayed')).toBe(2);
    expect(replies).toHaveLength(1);
  } finally {
    again.close();
  }
});

test('a path that loses large packets is found, and its size told', async () => {
  for (const [node, peer] of both()) {
    node.start();
    node.block('udp', 'length', '>', '1372'); // of the UDP datagram: IPv4 packets above 1392, IPv6 above 1412
    await node.health.apply(planOf(node, [peer]));
  }
  await a.until((health) => health.states().every(({ pathMtuBytes }) => pathMtuBytes !== undefined));
  const sizes = a.health.states().map(({ family, pathMtuBytes }) => [family, pathMtuBytes]);
  expect(new Map(sizes as [4 | 6, number][])).toEqual(
    new Map([
      [4, 1392],
      [6, 1412],
    ]),
  );
  expect(a.health.pathMtuBytes()).toEqual(new Map([['b', 1392]]));
});

test('a path that begins to lose large packets is found within ten seconds, while its small ones pass', async () => {
  await startBoth();
  await a.health.apply(planOf(a, [b], { mtuBytes: 1400 }));
  b.block('udp', 'length', '>', '1280');
  const took = await a.until((health) => health.pathMtuBytes().get('b') === 1300);
  console.log(`black hole found after ${Math.round(took)} ms`);
  expect(took).toBeLessThan(10_000);
  expect(are('Healthy')(a.health)).toBe(true);
});

test('a device that carries less than the pods may send counts as a narrower path', async () => {
  a.run('ip', 'link', 'set', 'dev', 'wire', 'mtu', '1400');
  await startBoth();
  await a.until((health) => health.pathMtuBytes().get('b') === 1400);
  expect(b.health.pathMtuBytes().get('a')).not.toBe(1400); // each end finds what it can send itself
});
