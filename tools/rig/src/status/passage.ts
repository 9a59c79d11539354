import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { LabLayout } from '../layout/layout.ts';
import { checkout, nodeJs, state } from '../machine/paths.ts';
import { inNode } from '../node/node.ts';

const program = join(checkout, 'tools/rig/src/status/pass-connections.ts');

/** A way from this machine to a TCP address as the node of the control plane reaches it, until this process ends. */
export interface Passage extends Disposable {
  /** A Unix socket to connect to. */
  readonly socket: string;
}

/** @param endpoint HOST:PORT */
export const openPassage = async (layout: LabLayout, name: string, endpoint: string): Promise<Passage> => {
  const socket = join(state, `${name}.sock`);
  const at = endpoint.lastIndexOf(':');
  const [host, port] = [endpoint.slice(0, at).replace(/[[\]]/g, ''), endpoint.slice(at + 1)];
  const [command, ...args] = [...inNode(layout.controlPlane.name), nodeJs, program, socket, host, port];
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return { socket, [Symbol.dispose]: () => child.stdin.end() };
};
