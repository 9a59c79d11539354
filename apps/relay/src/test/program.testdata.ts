import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { nodeCommand } from '@unbounded/config/node-command';
import { appEntry } from '@unbounded/testing';

export interface Program extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly port: number;
  readonly linkPort: number | undefined;
  readonly healthPort: number;
}

/** The relay as a process of nobody in particular, with so many descriptors. */
export const startProgram = async (descriptors: number, flags: readonly string[] = []): Promise<Program> => {
  const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
  const privileges = ['--inh-caps=-all', '--bounding-set=-all', '--no-new-privs'];
  const relay = [...nodeCommand, appEntry('relay'), '--addr', '127.0.0.1:0', '--health-port', '0', ...flags];
  const child = spawn('prlimit', [`--nofile=${descriptors}`, ...nobody, ...privileges, ...relay], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let healthPort = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const log = JSON.parse(line) as { msg: string; port: number; linkPort?: number; healthPort: number };
    if (log.msg === 'started') ({ healthPort } = log);
    if (log.msg === 'relaying')
      return {
        child,
        port: log.port,
        linkPort: log.linkPort,
        healthPort,
        [Symbol.asyncDispose]: async () => {
          child.kill('SIGKILL');
          if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
        },
      };
  }
  throw new Error('the relay ended before it relayed');
};
