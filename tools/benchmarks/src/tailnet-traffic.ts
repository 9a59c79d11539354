import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { run, tryRun } from '@unbounded/rig/command';
import { binary } from '@unbounded/rig/paths';
import { until } from '@unbounded/testing';
import type { Device } from './tailnet-device.ts';
import { isDirect } from './tailnet-local-api.ts';

/** What two devices send to each other. */

const PORT = 9700;
const DIRECT_WITHIN_MS = 15_000;

export interface Echoes {
  readonly lost: number;
  readonly p50Micros: number;
  readonly p99Micros: number;
}
export interface Bulk {
  readonly bytes: number;
  readonly megabitsPerSecond: number;
}

/** One end that asks, and the address of the other. */
export interface Way {
  readonly from: Device;
  readonly to: Device;
  readonly address: string;
}

/** Starts what answers, in the pod of the far end. */
export const startPeer = async ({ to }: Way): Promise<Disposable> => {
  const [program, ...args] = [...to.pod.enter, binary('probe'), 'peer', String(PORT)];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return { [Symbol.dispose]: () => void child.kill('SIGKILL') };
};

const ask = ({ from, address }: Way, command: string, amount: number): unknown =>
  JSON.parse(run([...from.pod.enter, binary('probe'), command, `${address}:${PORT}`, String(amount)]));

export const echo = (way: Way, count: number): Echoes => ask(way, 'roundtrip', count) as Echoes;
export const sendBulk = (way: Way, millis: number): Bulk => ask(way, 'bulk', millis) as Bulk;

const isDirectBothWays = async ({ from, to }: Way): Promise<boolean> =>
  (await isDirect(from.socket, to.hostName)) && (await isDirect(to.socket, from.hostName));

/** Packets go from process to process, by no relay. @throws Error: they do not */
export const untilDirect = async (way: Way): Promise<void> => {
  const ping = [...way.from.pod.enter, 'ping', '-c1', '-W1', way.address];
  const what = `${way.from.hostName} and ${way.to.hostName} reach each other without a relay`;
  await until(what, async () => tryRun(ping) !== undefined && isDirectBothWays(way), DIRECT_WITHIN_MS);
};

/** @throws Error: a relay has carried packets, or may have */
export const assertDirect = async (way: Way): Promise<void> => {
  if (!(await isDirectBothWays(way))) throw new Error(`${way.from.hostName} talks to ${way.to.hostName} by a relay`);
};
