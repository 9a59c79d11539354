import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type LabLayout, namespaceOf } from '../layout/layout.ts';
import { inNamespace } from '../machine/command.ts';
import { binary } from '../machine/paths.ts';

/**
 * A UDP server on every node, as exporters and DNS servers with hostNetwork are: it has no address of its own, so the kernel chooses the one
 * from which it answers.
 */
export const NODE_ECHO_PORT = 9002;

const startEcho = async (node: string): Promise<Disposable> => {
  const [program, ...argv] = [...inNamespace(namespaceOf(node)), binary('probe'), 'peer', String(NODE_ECHO_PORT)];
  const child = spawn(program, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit').then(([status]) => {
    throw new Error(`the UDP server on node ${node} ended (${status})`);
  });
  await Promise.race([once(child.stdout, 'data'), ended]);
  ended.catch(() => undefined);
  return { [Symbol.dispose]: () => void child.kill() };
};

/** While it is open, all nodes answer. */
export const openNodeEchoes = async ({ nodes }: LabLayout): Promise<Disposable> => {
  const echoes = new DisposableStack();
  try {
    for (const echo of await Promise.all(nodes.map(({ name }) => startEcho(name)))) echoes.use(echo);
    return echoes;
  } catch (error) {
    echoes.dispose();
    throw error;
  }
};
