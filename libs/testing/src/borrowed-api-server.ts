import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

import { kinds } from '@unbounded/crds';
import { coreClients, ensureCrds } from '@unbounded/kube';

import { adminKubeconfig } from './api-server-process.ts';
import { type ApiServer, startApiServer, useServer } from './api-server.ts';
import type { Lent } from './api-server-pool.ts';
import { POOL_VARIABLE } from './pool-variable.ts';

export interface BorrowedServer {
  readonly api: ApiServer;
  /** Of its keys and data. */
  readonly directory: string;
  /** When it ends, with this process at the latest, the server is given back. */
  readonly connection: Socket;
}

/** @param path of a pool's socket @throws Error with what the pool says, where it has none */
export const borrowFrom = async (path: string): Promise<BorrowedServer> => {
  const connection = connect(path);
  await once(connection, 'connect');
  const [line] = (await once(createInterface(connection), 'line')) as [string];
  const lent = JSON.parse(line) as Lent;
  if ('error' in lent) throw new Error(`no API server: ${lent.error}`);
  const { openCluster } = await import('@unbounded/kube/open-cluster');
  const cluster = openCluster({ kubeconfig: adminKubeconfig(lent.directory) });
  return { api: useServer({ ...lent, cluster }, async () => cluster.close()), directory: lent.directory, connection };
};

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
  const { api, connection } = await borrowFrom(path);
  connection.unref(); // it stays as long as this process, with all that it has started
  return api;
};
