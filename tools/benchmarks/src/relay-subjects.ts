import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { binary } from '@unbounded/rig/paths';

/** A relay under test. `pid` is undefined for one that runs elsewhere. */
export interface Subject extends Disposable {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly pid: number | undefined;
}

const root = new URL('../../../', import.meta.url).pathname;
const TICKS_PER_SECOND = 100; // USER_HZ, the same on every Linux

/** Compiles splice and relay-load into the folder, and the relay in Go into the cache. */
export const compile = (folder: string): void => {
  for (const name of ['splice', 'relay-load']) {
    const source = join(root, 'tools/benchmarks/ref', `${name}.c`);
    execFileSync('gcc', ['-O2', '-Wall', '-Werror', '-pthread', source, '-o', join(folder, name)]);
  }
  execFileSync(join(root, 'tools/assets/build'), ['go-relay'], { stdio: 'inherit' });
};

const answers = async (port: number): Promise<boolean> => {
  const socket = connect({ host: '127.0.0.1', port });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
};

const started = async (name: string, child: ChildProcess, port: number): Promise<Subject> => {
  const end = performance.now() + 15_000;
  while (!(await answers(port))) {
    if (child.exitCode !== null || performance.now() > end) throw new Error(`${name} does not listen on port ${port}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { name, host: '127.0.0.1', port, pid: child.pid, [Symbol.dispose]: () => child.kill('SIGKILL') };
};

export const startSplice = (folder: string, port: number): Promise<Subject> =>
  started('splice', spawn(join(folder, 'splice'), [String(port)], { stdio: 'inherit' }), port);

/** A relay of the documented frames in Go (tools/assets/go-relay). */
export const startGoRelay = (port: number): Promise<Subject> =>
  started('go', spawn(binary('go-relay'), [String(port)], { stdio: 'inherit' }), port);

/** As the chart and the systemd unit start it: forwarding makes little garbage, so a small nursery is enough. */
const HEAP = ['--max-semi-space-size=1'];

/** Our bundle, with limits that a generator on one address does not meet. */
export const startRelay = (port: number): Promise<Subject> => {
  const limits = ['--max-connections-per-address', '100000', '--new-connections-per-second', '100000'];
  const flags = ['--addr', `127.0.0.1:${port}`, '--health-port', '0', '--log-level', 'warn', ...limits];
  const bundle = join(root, 'apps/relay/dist/main.mjs');
  return started(
    'relay',
    spawn(join(root, 'tools/node'), [...HEAP, bundle, ...flags], { stdio: ['ignore', 'inherit', 'inherit'] }),
    port,
  );
};

/** Seconds of processor time so far, all threads. */
const cpuOf = ({ pid }: Subject): number => {
  if (pid === undefined) return Number.NaN;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
};

/** KiB of memory of its own: without the pages of the Node binary, which are the file's. */
export const memoryOf = ({ pid }: Subject): number =>
  Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

export interface LoadResult {
  readonly perSecond: number;
  /** 0 to 1, of what the sockets took. */
  readonly loss: number;
  readonly refused: number;
  readonly taken: number;
  readonly p50us: number;
  readonly p99us: number;
  /** Seconds of the subject's processor time for a million messages. */
  readonly cpuPerMillion: number;
}

export interface Load {
  readonly pairs: number;
  readonly payloadBytes: number;
  readonly seconds: number;
  /** Messages a second in all; 0: as fast as it goes. */
  readonly rate: number;
  /** Whether messages are timed; it costs the generator something. */
  readonly timed: boolean;
  /** Messages of each pair that are on their way; 0: any number. */
  readonly window?: number;
}

/** Runs the generator against the subject. */
export const runLoad = (folder: string, subject: Subject, load: Load): LoadResult => {
  const { pairs, payloadBytes, seconds, rate, timed, window = 0 } = load;
  const cpuBefore = cpuOf(subject);
  const numbers = [pairs, payloadBytes, seconds, rate.toFixed(0), timed ? 1 : 0, window];
  const args = [subject.host, subject.port, ...numbers].map(String);
  const result = JSON.parse(execFileSync(join(folder, 'relay-load'), args, { encoding: 'utf8' })) as Record<
    'seconds' | 'delivered' | 'takenInAll' | 'deliveredInAll' | 'refused' | 'p50us' | 'p99us',
    number
  >;
  return {
    perSecond: result.delivered / result.seconds,
    loss: 1 - result.deliveredInAll / result.takenInAll,
    refused: result.refused,
    taken: result.takenInAll,
    p50us: result.p50us,
    p99us: result.p99us,
    cpuPerMillion: ((cpuOf(subject) - cpuBefore) / result.deliveredInAll) * 1e6,
  };
};
