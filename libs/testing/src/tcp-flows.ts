import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { FlowsTold } from './tcp-flows.process.ts';

/** TCP connections that stay, for tests of what interrupts them. */

export interface TcpServer {
  end(): void;
}
export interface TcpFlows {
  /** The client's address of each connection that was established within 20 s, as the server sees it. */
  readonly sources: readonly string[];
  /** How many still bring a line there and back, within 20 s. */
  alive(): Promise<number>;
  end(): void;
}

const start = (within: readonly string[], ...args: readonly string[]) => {
  const [program, ...argv] = [
    ...within,
    join(import.meta.dirname, '../../../tools/node'),
    join(import.meta.dirname, 'tcp-flows.process.ts'),
    ...args,
  ];
  const child = spawn(program!, argv, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    say: (line: string): void => void child.stdin.write(`${line}\n`),
    async next(): Promise<FlowsTold> {
      const { value, done } = await lines.next();
      if (done) throw new Error(`tcp-flows ${args.join(' ')} ended`);
      return JSON.parse(value) as FlowsTold;
    },
    end: () => void child.stdin.end(), // what enters the network may be a process of its own
  };
};

/**
 * Echoes in both families.
 * @param within the command that enters a network, before the program: `['nsenter', '--net=…']`
 */
export const serveTcp = async (within: readonly string[], port: number): Promise<TcpServer> => {
  const server = start(within, 'serve', String(port));
  await server.next();
  return server;
};

/** Opens connections, and keeps them. */
export const openTcpFlows = async (
  within: readonly string[],
  { host, port, count }: { readonly host: string; readonly port: number; readonly count: number },
): Promise<TcpFlows> => {
  const client = start(within, 'connect', host, String(port), String(count));
  const told = await client.next();
  if (!('sources' in told)) throw new Error(`${JSON.stringify(told)} instead of the sources`);
  return {
    sources: told.sources,
    async alive() {
      client.say('');
      const answer = await client.next();
      if (!('alive' in answer)) throw new Error(`${JSON.stringify(answer)} instead of a number`);
      return answer.alive;
    },
    end: client.end,
  };
};
