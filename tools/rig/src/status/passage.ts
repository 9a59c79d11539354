import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
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

/** Leads from a TCP port of this machine's loopback to the socket of a passage. @throws Error when the port is taken */
export const serveOnLoopback = async (socket: string, port: number): Promise<Server> => {
  const server = createServer((client) => pipeline(client, connect(socket), client, () => undefined));
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return server;
};
