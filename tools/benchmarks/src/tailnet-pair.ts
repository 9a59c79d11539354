import { setTimeout as delay } from 'node:timers/promises';
import type { ControlServer } from '@unbounded/rig/tailnet-control-server';
import { median } from './rounds.ts';
import { type Device, type MakeDevice, ours, stock } from './tailnet-device.ts';
import { createPod } from './tailnet-node.ts';
import { memoryOf, secondsOf } from './tailnet-process.ts';
import { assertDirect, echo, sendBulk, startPeer, untilDirect, type Way } from './tailnet-traffic.ts';

/** Two pods of one node that talk directly: devices of ours, and of a stock tailscaled, in turns. */

export const TAGS = ['tag:k8s-pod'];
const ECHOES = 1000;
const BULK_MS = 3000;
/** A process has come to rest. */
const REST_MS = 3000;

type Turn = Readonly<Record<keyof typeof METRICS, number>>;

interface Metric {
  readonly name: string;
  /** Of the ratio ours / stock. */
  readonly atMost?: number;
  readonly atLeast?: number;
}

const METRICS = {
  startMs: { name: 'spawn to Running (ms)' },
  restartMs: { name: 'killed, spawn to Running with its state (ms)' },
  rssAtStart: { name: 'RSS at start (MiB)', atMost: 0.4 },
  rssAfter: { name: 'RSS after traffic (MiB)', atMost: 0.4 },
  pssAtStart: { name: 'PSS at start (MiB)' },
  pssAfter: { name: 'PSS after traffic (MiB)' },
  echoP50: { name: 'round trip, median (µs)', atMost: 1 },
  echoP99: { name: 'round trip, 99th percentile (µs)' },
  megabits: { name: 'one TCP connection (Mbit/s)', atLeast: 1 },
  secondsPerGB: { name: 'processor time of both devices (s/GB)', atMost: 1 },
} satisfies Record<string, Metric>;
const METRIC_LIST = Object.entries<Metric>(METRICS) as readonly (readonly [keyof Turn, Metric])[];

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const meanMemory = (devices: readonly Device[]): { readonly rss: number; readonly pss: number } => {
  const each = devices.map(({ pid }) => memoryOf(pid));
  return { rss: mean(each.map(({ rssMiB }) => rssMiB)), pss: mean(each.map(({ pssMiB }) => pssMiB)) };
};

const measureTraffic = async (way: Way): Promise<Pick<Turn, 'echoP50' | 'echoP99' | 'megabits' | 'secondsPerGB'>> => {
  using _peer = await startPeer(way);
  await untilDirect(way);
  const { lost, p50Micros: echoP50, p99Micros: echoP99 } = echo(way, ECHOES);
  if (lost > 0) console.log(`  ${lost} of ${ECHOES} echoes to ${way.to.hostName} were lost`);
  const seconds = (): number => secondsOf(way.from.pid) + secondsOf(way.to.pid);
  const before = seconds();
  const { bytes, megabitsPerSecond: megabits } = sendBulk(way, BULK_MS);
  const secondsPerGB = (seconds() - before) / (bytes / 1e9);
  await assertDirect(way);
  return { echoP50, echoP99, megabits, secondsPerGB };
};

/** One after the other: two starts at once would share the processors. */
const startBoth = async (devices: readonly Device[], keys: readonly string[] = []): Promise<number> => {
  const took: number[] = [];
  for (const [index, device] of devices.entries()) took.push(await device.start(keys[index]));
  return mean(took);
};

const takeTurn = async (make: MakeDevice, control: ControlServer): Promise<Turn> => {
  const devices = ['web-0', 'web-1'].map((name, index) => make(createPod(name, 10 + index)));
  for (const device of devices) await device.prepare();
  const keys = [await control.createKey(TAGS), await control.createKey(TAGS)];
  const startMs = await startBoth(devices, keys);
  const [from, to] = [devices[0]!, devices[1]!];
  await from.address();
  const way = { from, to, address: await to.address() };
  await delay(REST_MS);
  const atStart = meanMemory(devices);
  const traffic = await measureTraffic(way);
  await delay(REST_MS);
  const after = meanMemory(devices);
  for (const device of devices) await device.kill();
  const restartMs = await startBoth(devices);
  for (const device of devices) {
    await device.kill();
    await control.deleteDevice(device.hostName);
    device.pod.remove();
  }
  const memory = { rssAtStart: atStart.rss, pssAtStart: atStart.pss, rssAfter: after.rss, pssAfter: after.pss };
  return { startMs, restartMs, ...memory, ...traffic };
};

const digits = (value: number): string => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);
const spread = (values: readonly number[]): string =>
  `${digits(median(values))} (${digits(Math.min(...values))} - ${digits(Math.max(...values))})`;

const goalOf = ({ atMost, atLeast }: Metric, ratio: number): string => {
  if (atMost !== undefined) return `${atMost} or less: ${ratio <= atMost ? 'met' : '**missed**'}`;
  return atLeast === undefined ? '-' : `${atLeast} or more: ${ratio >= atLeast ? 'met' : '**missed**'}`;
};

/** A round is a turn of each; who is first changes. The first one, in which programs are read from the disk, does not count. */
export const benchPairs = async (control: ControlServer, rounds: number): Promise<void> => {
  const [oursTook, stockTook]: [Turn[], Turn[]] = [[], []];
  const sides = [[ours, oursTook] as const, [stock, stockTook] as const];
  for (let round = 0; round <= rounds; round++)
    for (const [make, took] of round % 2 === 0 ? sides : sides.toReversed()) {
      const turn = await takeTurn(make, control);
      if (round > 0) took.push(turn);
    }
  console.log(`\nTwo pods of one node, ${rounds} rounds: ${ECHOES} echoes, then ${BULK_MS / 1000} s of bulk.\n`);
  console.log('| | ours | stock tailscaled | ours / stock | goal |\n|---|---|---|---|---|');
  for (const [key, metric] of METRIC_LIST) {
    const values = [oursTook, stockTook].map((turns) => turns.map((turn) => turn[key]));
    const ratios = oursTook.map((turn, index) => turn[key] / stockTook[index]![key]);
    const cells = [metric.name, ...[...values, ratios].map(spread), goalOf(metric, median(ratios))];
    console.log(`| ${cells.join(' | ')} |`);
  }
};
