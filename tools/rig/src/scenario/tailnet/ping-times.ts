import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { PodDevice } from './pod-device.ts';

/** Answers to pings that a pod sends, by the clock of the machine. */

const BEFORE_MS = 500;
const AFTER_MS = 8000;

/** Runs `ping` in the pod; each answer is told. */
const startPing = ({ enter }: PodDevice, address: string, everyMs: number, answered: () => void) => {
  const argv = [...enter, 'ping', '-i', String(everyMs / 1000), address];
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...argv], { stdio: ['ignore', 'pipe', 'ignore'] });
  child.stdout.on('data', (data: Buffer) => {
    if (data.includes(' ttl=')) answered();
  });
  return async (): Promise<void> => {
    const ended = once(child, 'exit');
    child.kill('SIGINT');
    await ended;
  };
};

/** The longest time without an answer while something happens and for some seconds afterwards, milliseconds. */
export const gapDuring = async (from: PodDevice, address: string, happen: () => Promise<void>): Promise<number> => {
  const atMs: number[] = [];
  const end = startPing(from, address, 20, () => atMs.push(performance.now()));
  await delay(BEFORE_MS);
  await happen();
  await delay(AFTER_MS);
  await end();
  atMs.push(performance.now());
  return Math.round(Math.max(...atMs.slice(1).map((ms, index) => ms - atMs[index]!)));
};

/** @returns milliseconds; Infinity: none within 20 s */
export const firstAnswer = async (from: PodDevice, address: string): Promise<number> => {
  const begunMs = performance.now();
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = startPing(from, address, 50, resolve);
  const isAnswered = await Promise.race([promise.then(() => true), delay(20_000, false)]);
  const tookMs = Math.round(performance.now() - begunMs);
  await end();
  return isAnswered ? tookMs : Infinity;
};
