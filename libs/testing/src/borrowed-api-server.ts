import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

import { kinds } from '@unbounded/crds';
import { coreClients, ensureCrds } from '@unbounded/kube';

import { adminKubeconfig } from './api-server-process.ts';
import { type ApiServer, startApiServer, useServer } from './api-server.ts';
import type { Lent } from './api-server-pool.ts';
import { POOL_VARIABLE } from './pool-variable.ts';

/**
 * A real API server with our kinds, which other test files use after this one: as it was made, whatever they did. Where no pool runs, one
 * of this file alone. Call it once for a test file, in `beforeAll`, and `stop()` in `afterAll`.
 */
export const borrowApiServer = async (): Promise<ApiServer> => {
  const path = process.env[POOL_VARIABLE];
  if (path === undefined) {
    const own = await startApiServer();
    await ensureCrds(coreClients(own.cluster).crds, kinds);
    return own;
  }
  const socket = connect(path);
  await once(socket, 'connect');
  const [line] = (await once(createInterface(socket), 'line')) as [string];
  const lent = JSON.parse(line) as Lent;
  if ('error' in lent) throw new Error(`no API server: ${lent.error}`);
  socket.unref(); // it is given back when this process ends, with all that it has started
  const { openCluster } = await import('@unbounded/kube/open-cluster');
  const cluster = openCluster({ kubeconfig: adminKubeconfig(lent.directory) });
  return useServer({ ...lent, cluster }, async () => cluster.close());
};
