import { once } from 'node:events';
import type { LabLayout } from '../layout/layout.ts';
import { openPassage, serveOnLoopback } from './passage.ts';
import { aggregatorEndpoint, viewerToken } from './viewer.ts';

/** The page of the status aggregator on this machine's loopback, for a browser. */

const PORT = 9443;

/** Serves until it is interrupted. @throws Error when the port is taken */
export const serveDashboard = async (layout: LabLayout): Promise<void> => {
  const { socket } = await openPassage(layout, 'dashboard', await aggregatorEndpoint(layout));
  await serveOnLoopback(socket, PORT);
  const token = await viewerToken(layout);
  console.log(`https://localhost:${PORT}/    its certificate is the cluster's own: the browser warns of it

token, for twelve hours:
${token}

Ctrl+C ends it. By curl:
  curl -k -H "Authorization: Bearer TOKEN" https://localhost:${PORT}/v1alpha1/view`);
  await once(process, 'SIGINT');
  process.exit();
};
