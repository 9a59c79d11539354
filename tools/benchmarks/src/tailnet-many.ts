import { setTimeout as delay } from 'node:timers/promises';
import type { ControlServer } from '@unbounded/rig/tailnet-control-server';
import { median } from './rounds.ts';
import { type Device, ours } from './tailnet-device.ts';
import { createPod } from './tailnet-node.ts';
import { TAGS } from './tailnet-pair.ts';
import { memoryOf } from './tailnet-process.ts';
import { assertDirect, echo, sendBulk, startPeer, untilDirect } from './tailnet-traffic.ts';

/** Many devices of ours on one node, all at once: how long each takes, and what memory they have. */

/** As the keeper of devices (apps/node-keeper): it sets up so many pods side by side, and does not wait for a device. */
const AT_ONCE = 4;
const REST_MS = 5000;
const [ECHOES, BULK_MS] = [100, 100];
const [MOST_MS, MOST_MIB] = [800, 24];

/** Milliseconds until a device was Running. */
interface Start {
  readonly ofProcess: number;
  /** From when all were wanted. */
  readonly ofAll: number;
}

const startAll = async (devices: readonly Device[], keys: readonly string[]): Promise<Start[]> => {
  const [began, starts] = [performance.now(), [] as Promise<Start>[]];
  const start = async (device: Device, key: string): Promise<Start> => {
    const ofProcess = await device.start(key);
    return { ofProcess, ofAll: performance.now() - began };
  };
  const next = devices.entries();
  const prepare = async (): Promise<void> => {
    for (const [index, device] of next) {
      await device.prepare();
      starts.push(start(device, keys[index]!));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, prepare));
  return Promise.all(starts);
};

/** Pairs, one after the other. */
const exchange = async (devices: readonly Device[], addresses: readonly string[]): Promise<void> => {
  for (let index = 0; index + 1 < devices.length; index += 2) {
    const way = { from: devices[index]!, to: devices[index + 1]!, address: addresses[index + 1]! };
    using _peer = await startPeer(way);
    await untilDirect(way);
    echo(way, ECHOES);
    sendBulk(way, BULK_MS);
    await assertDirect(way);
  }
};

const percentile = (values: readonly number[], per100: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor((values.length * per100) / 100))]!;

const printTimes = (name: string, values: readonly number[], goal = '-'): void =>
  console.log(
    `| ${[name, median(values).toFixed(0), percentile(values, 95).toFixed(0), Math.max(...values).toFixed(0), goal].join(' | ')} |`,
  );

const printMemory = (when: string, devices: readonly Device[]): void => {
  const memory = devices.map(({ pid }) => memoryOf(pid));
  for (const [name, values, goal] of [
    ['RSS', memory.map(({ rssMiB }) => rssMiB), `median ${MOST_MIB}`],
    ['PSS', memory.map(({ pssMiB }) => pssMiB), '-'],
  ] as const) {
    const sum = values.reduce((total, value) => total + value, 0);
    const cells = [median(values).toFixed(1), Math.max(...values).toFixed(1), sum.toFixed(0), goal];
    console.log(`| ${[`${name} ${when} (MiB)`, ...cells].join(' | ')} |`);
  }
};

export const benchMany = async (control: ControlServer, count: number): Promise<void> => {
  const devices = Array.from({ length: count }, (_, index) => ours(createPod(`many-${index}`, 10 + index)));
  const keys: string[] = [];
  for (const _ of devices) keys.push(await control.createKey(TAGS));
  const starts = await startAll(devices, keys);
  const addresses: string[] = [];
  for (const device of devices) addresses.push(await device.address());
  await delay(REST_MS);
  console.log(`\n${count} devices of ours on one node; ${AT_ONCE} pods are set up side by side.\n`);
  console.log('| ms | p50 | p95 | max | goal |\n|---|---|---|---|---|');
  printTimes(
    'spawn of the process to Running',
    starts.map(({ ofProcess }) => ofProcess),
    `p50 ${MOST_MS}`,
  );
  printTimes(
    `all ${count} wanted to Running`,
    starts.map(({ ofAll }) => ofAll),
  );
  console.log('\n| | median | worst | all | goal |\n|---|---|---|---|---|');
  printMemory('at rest', devices);
  await exchange(devices, addresses);
  await delay(REST_MS);
  printMemory('after traffic in pairs', devices);
  for (const device of devices) {
    await device.kill();
    device.pod.remove();
  }
};
