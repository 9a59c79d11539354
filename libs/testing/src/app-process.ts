import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { appEntry } from './app-entry.ts';

/** A program of this repository as a process of its own. */
export interface AppProcess extends AsyncDisposable {
  /** Lines of its log so far, parsed. */
  readonly log: readonly Record<string, unknown>[];
  readonly pid: number;
  /** Resolves with the exit code; null when a signal ended it. */
  readonly exited: Promise<number | null>;
  /** The body of a path of its health server; throws until that is up. */
  health(path: string): Promise<{ readonly status: number; readonly body: string }>;
  /** Resolves when it has ended. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

const collectLines = (child: ChildProcess, onLine: (line: string) => void): void => {
  let rest = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  });
};

const node = fileURLToPath(new URL('../../../tools/node', import.meta.url));

/** Starts `apps/<app>` ({@link appEntry}), with these variables in its environment as well. It dies with this process. */
export const startApp = (
  app: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): AppProcess => {
  const argv = ['--pdeathsig', 'KILL', node, appEntry(app), '--health-port', '0', ...args];
  const child = spawn('setpriv', argv, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...{ PATH: process.env['PATH'], HOME: '/nonexistent', NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
      ...environment,
    },
  });
  const log: Record<string, unknown>[] = [];
  collectLines(child, (line) => {
    try {
      log.push(JSON.parse(line) as Record<string, unknown>);
    } catch {
      log.push({ text: line });
    }
  });
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  const stop: AppProcess['stop'] = async (signal = 'SIGTERM') => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    return exited;
  };
  return {
    log,
    pid: child.pid!,
    exited,
    health: async (path) => {
      const port = log.find(({ healthPort }) => healthPort !== undefined)?.['healthPort'];
      if (typeof port !== 'number') throw new Error(`${app} has not started its health server`);
      const response = await fetch(`http://127.0.0.1:${port}${path}`);
      return { status: response.status, body: await response.text() };
    },
    stop,
    [Symbol.asyncDispose]: async () => {
      await stop('SIGKILL');
    },
  };
};
