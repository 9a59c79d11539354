import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run, tryRun } from '@unbounded/rig/command';
import { type LabLayout, type LabNode, namespaceOf } from '@unbounded/rig/layout';
import { binary, state } from '@unbounded/rig/paths';
import type { End } from './by-hand.ts';
import { type Round, ROUNDS, row } from './rounds.ts';

/** Two paths between two nodes of the lab, measured in turns. */

const PORT = 9700;
const ECHOES = 2000;
const WARM_UP = 200; // echoes that the probe sends before those that count
const BULK_MS = 1500;

/** What one turn of one side measures. */
const METRICS = [
  'round-trip, median (µs)',
  'round-trip, 99th percentile (µs)',
  'one TCP connection (Mbit/s)',
  'CPU of the whole machine (s/GB)',
  'on the wire per echo of 64 bytes (bytes)',
] as const;

/** @throws Error: there is none */
export const runningLab = (): LabLayout => {
  const file = join(state, 'layout.json');
  if (!existsSync(file)) throw new Error('there is no lab: run tools/lab up');
  return JSON.parse(readFileSync(file, 'utf8')) as LabLayout;
};

/** How to run something in the namespace of the process of a test pod that has the address. @throws Error */
export const enterPod = (ip: string): readonly string[] => {
  const pids = run(['pgrep', '-x', 'probe']).trim().split('\n');
  const pid = pids.find((candidate) => tryRun(['nsenter', '-t', candidate, '-n', 'ip', 'addr'])?.includes(` ${ip}/`));
  if (pid === undefined)
    throw new Error(`no process of a test pod has the address ${ip}: is the lab settled (tools/lab verify)?`);
  return ['nsenter', '-t', pid, '-n', '--'];
};

/** Of an interface there, bytes. */
export const mtuAt = ({ enter }: End, device: string): number =>
  (JSON.parse(run([...enter, 'ip', '-j', 'link', 'show', device])) as { mtu: number }[])[0]!.mtu;

/** Starts what answers at an end. Not the pod's own server: its CPU shares would not be those of the reference's. */
const startPeer = async (end: End): Promise<Disposable> => {
  const [program, ...args] = [...end.enter, binary('probe'), 'peer', String(PORT)];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise<void>((resolve, reject) => {
    child.stdout.once('data', () => resolve());
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`probe peer at ${end.ip} ended with ${code}`)));
  });
  return { [Symbol.dispose]: () => void child.kill('SIGKILL') };
};

/** What the probe's `roundtrip` and `bulk` print. */
interface EchoReport {
  readonly lost: number;
  readonly p50Micros: number;
  readonly p99Micros: number;
}
interface BulkReport {
  readonly bytes: number;
  readonly megabitsPerSecond: number;
}

const ask = (from: End, to: End, ...[command, amount]: [string, number]): unknown =>
  JSON.parse(run([...from.enter, binary('probe'), command, `${to.ip}:${PORT}`, String(amount)]));

/** Seconds that the processors have worked since boot (proc(5), /proc/stat: user nice system idle iowait irq softirq steal). */
const busySeconds = (): number => {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)[0]!
    .split(/ +/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq) / 100;
};

/** Bytes that left the node by its real interfaces, which are the ones named eth0, eth1. */
const sentBytes = (node: LabNode): number =>
  (
    JSON.parse(run(['ip', '-n', namespaceOf(node.name), '-j', '-s', 'link'])) as {
      ifname: string;
      stats64: { tx: { bytes: number } };
    }[]
  )
    .filter(({ ifname }) => ifname.startsWith('eth'))
    .reduce((sum, { stats64 }) => sum + stats64.tx.bytes, 0);

const measure = (node: LabNode, from: End, to: End): number[] => {
  const sentBefore = sentBytes(node);
  const echo = ask(from, to, 'roundtrip', ECHOES) as EchoReport;
  const sent = sentBytes(node) - sentBefore;
  if (echo.lost > 0) console.log(`  ${echo.lost} of ${ECHOES} echoes to ${to.ip} were lost`);
  const busyBefore = busySeconds();
  const bulk = ask(from, to, 'bulk', BULK_MS) as BulkReport;
  const busy = busySeconds() - busyBefore;
  return [echo.p50Micros, echo.p99Micros, bulk.megabitsPerSecond, busy / (bulk.bytes / 1e9), sent / (ECHOES + WARM_UP)];
};

/** Rounds of both sides; who is first changes from round to round. Rounds of each metric. */
const compare = async (node: LabNode, ours: readonly End[], theirs: readonly End[]): Promise<Round[][]> => {
  using _ours = await startPeer(ours[1]!);
  using _theirs = await startPeer(theirs[1]!);
  const rounds: Round[][] = METRICS.map(() => []);
  for (let round = 0; round <= ROUNDS; round++) {
    const turn = { ours: () => measure(node, ours[0]!, ours[1]!), theirs: () => measure(node, theirs[0]!, theirs[1]!) };
    const values: { ours?: number[]; theirs?: number[] } = {};
    for (const side of round % 2 === 0 ? (['ours', 'theirs'] as const) : (['theirs', 'ours'] as const))
      values[side] = turn[side]();
    if (round === 0) continue; // warms up
    rounds.forEach((list, metric) => list.push({ ours: values.ours![metric]!, theirs: values.theirs![metric]! }));
  }
  return rounds;
};

/** How it was measured, in words. */
export const METHOD = `Medians of ${ROUNDS} interleaved rounds: ${ECHOES} echoes, then ${BULK_MS / 1000} s of bulk. The ratio is the median of the rounds' ratios.`;

/** Measures both paths and prints a table of it. */
export const printComparison = async (
  { title, node }: { readonly title: string; readonly node: LabNode },
  ours: readonly End[],
  theirs: readonly End[],
): Promise<void> => {
  const rounds = await compare(node, ours, theirs);
  console.log(`\n${title}\n`);
  console.log('| | ours | by hand | ratio | least - greatest |\n|---|---|---|---|---|');
  METRICS.forEach((name, metric) => console.log(row(name, rounds[metric]!)));
};
