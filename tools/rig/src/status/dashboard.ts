import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import type { LabLayout } from '../layout/layout.ts';
import { checkout, nodeJs, state } from '../machine/paths.ts';
import { inNode } from '../node/node.ts';
import { aggregatorEndpoint, viewerToken } from './viewer.ts';

/** The page of the status aggregator on this machine's loopback, for a browser. */

const PORT = 9443;
const socket = join(state, 'dashboard.sock');
const program = join(checkout, 'tools/rig/src/status/pass-connections.ts');

/** Inside of the control plane's node, until this process ends. */
const startPassing = async (layout: LabLayout): Promise<void> => {
  const endpoint = await aggregatorEndpoint(layout);
  const at = endpoint.lastIndexOf(':');
  const [host, port] = [endpoint.slice(0, at).replace(/[[\]]/g, ''), endpoint.slice(at + 1)];
  const [command, ...args] = [...inNode(layout.controlPlane.name), nodeJs, program, socket, host, port];
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
};

/** Serves until it is interrupted. @throws Error when the port is taken */
export const serveDashboard = async (layout: LabLayout): Promise<void> => {
  await startPassing(layout);
  const server = createServer((client) => {
    pipeline(client, connect(socket), client, () => undefined);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(PORT, '127.0.0.1', resolve);
  });
  const token = await viewerToken(layout);
  console.log(`https://localhost:${PORT}/    its certificate is the cluster's own: the browser warns of it

token, for twelve hours:
${token}

Ctrl+C ends it. By curl:
  curl -k -H "Authorization: Bearer TOKEN" https://localhost:${PORT}/v1alpha1/view`);
  await once(process, 'SIGINT');
  process.exit();
};
