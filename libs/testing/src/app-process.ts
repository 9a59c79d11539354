import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

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

const root = fileURLToPath(new URL('../../../', import.meta.url));

const collectLines = (child: ChildProcess, onLine: (line: string) => void): void => {
  let rest = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  });
};

/** Starts `apps/<app>`: its bundle when `bundled`, else its sources. It dies with this process. */
export const startApp = (app: string, args: readonly string[], { bundled = false } = {}): AppProcess => {
  const entry = `${root}apps/${app}/${bundled ? 'dist/main.mjs' : 'src/main.ts'}`;
  if (!existsSync(entry)) throw new Error(`${entry} does not exist${bundled ? `: run tools/build ${app}` : ''}`);
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', `${root}tools/node`, entry, '--health-port', '0', ...args], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
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
