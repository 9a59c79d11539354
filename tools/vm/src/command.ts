import { execFile, type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Runs a command and returns what it printed. @throws Error with what it said on standard error */
export const run = async (argv: readonly string[]): Promise<string> => {
  const { stdout } = await execute(argv[0]!, argv.slice(1), { encoding: 'utf8', maxBuffer: 64 << 20 });
  return stdout;
};

export const runJson = async <T>(argv: readonly string[]): Promise<T> => JSON.parse(await run(argv)) as T;

export const inNamespace = (namespace: string): string[] => ['nsenter', `--net=/run/netns/${namespace}`];

/** `ip -batch` in a namespace. */
export const ip = async (namespace: string, lines: readonly string[]): Promise<void> => {
  const child = execute('ip', ['-n', namespace, '-batch', '-']);
  child.child.stdin!.end(`${lines.join('\n')}\n`);
  await child;
};

/** Starts something that stays; its output goes on a line by line. */
export const start = (argv: readonly string[], onLine: (line: string) => void): ChildProcess => {
  const child = spawn(argv[0]!, argv.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [child.stdout, child.stderr]) {
    let rest = '';
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop()!;
      for (const line of lines) onLine(line);
    });
  }
  return child;
};

export const end = async (child: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, 'exit');
};

const POLL_MS = 50;

/** Asks until the answer is true; an error counts as "not yet". @throws Error after `timeoutMs`, naming `what` */
export const until = async (
  what: string,
  probe: () => Promise<boolean> | boolean,
  timeoutMs = 180_000,
): Promise<void> => {
  const deadline = performance.now() + timeoutMs;
  let cause: unknown;
  while (performance.now() < deadline) {
    try {
      if (await probe()) return;
    } catch (error) {
      cause = error;
    }
    await sleep(POLL_MS);
  }
  throw new Error(`not within ${timeoutMs} ms: ${what}`, { cause });
};
