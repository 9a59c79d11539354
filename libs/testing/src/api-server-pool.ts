import { EventEmitter, once } from 'node:events';
import { createServer, type Socket } from 'node:net';

import { kinds } from '@unbounded/crds';
import { coreClients, ensureCrds } from '@unbounded/kube';

import { ETCD_PORT, SERVERS_OF_A_PROCESS, type ServerProcess, startServer } from './api-server-process.ts';
import { type EtcdState, readEtcdState } from './etcd-state.ts';
import { policySentinel } from './policy-sentinel.ts';

/**
 * API servers with our kinds that test files use in turn: between two of them everything is stored as it was before. Starting one takes
 * a file more processor time than what most of them test.
 *
 * Over a connection to its Unix socket a file gets one server; when the connection ends, with the file's process at the latest, it is given back.
 */

/** What a file gets, as a line of JSON. */
export type Lent = Pick<ServerProcess, 'directory' | 'address'> | { readonly error: string };

interface Server extends ServerProcess {
  readonly state: EtcdState;
}

/** Kinds and API services are followed by much that the server has in memory: one in which they changed is not used again. */
const ENDS_A_SERVER = /^\/registry\/(?:apiextensions\.k8s\.io|apiregistration\.k8s\.io)\//;
const OF_POLICIES = /^\/registry\/validatingadmissionpolic/;

const startWithKinds = async (): Promise<Server> => {
  const server = await startServer();
  await ensureCrds(coreClients(server.cluster).crds, kinds);
  return { ...server, state: await readEtcdState(`http://${server.address}:${ETCD_PORT}`) };
};

/** Waits until policies that were removed are no longer in force. */
const settlePolicies = async ({ cluster }: Server): Promise<void> => {
  const sentinel = policySentinel();
  await sentinel.write(cluster);
  await sentinel.untilInForce(cluster);
};

/** @returns false: it cannot be as it was. @throws Error without an answer of the API server or of etcd */
const restore = async (server: Server): Promise<boolean> => {
  const changed = await server.state.restore();
  if (changed.some((key) => ENDS_A_SERVER.test(key))) return false;
  await server.cluster.transport.sendText({ method: 'GET', path: '/readyz' });
  if (changed.some((key) => OF_POLICIES.test(key))) await settlePolicies(server);
  const late = await server.state.restore(); // the sentinel, and what a process had asked for when it ended
  return !late.some((key) => ENDS_A_SERVER.test(key));
};

export interface ApiServerPool extends AsyncDisposable {
  /** Resolves when all have ended. */
  stop(): Promise<void>;
}

/** @param path of the Unix socket, which must not exist @param most servers at a time: a file waits until there is one */
export const openApiServerPool = async (path: string, most = SERVERS_OF_A_PROCESS): Promise<ApiServerPool> => {
  const changes = new EventEmitter<{ readonly freed: [] }>();
  const all = new Set<Server>();
  const idle: Server[] = [];
  /** Of all, with those that start or end; and of those that are restored or end. */
  let [size, restoring] = [0, 0];
  const startAnother = async (): Promise<Server> => {
    size += 1;
    const server = await startWithKinds().catch((error: unknown) => {
      size -= 1;
      throw error;
    });
    all.add(server);
    return server;
  };
  const end = async (server: Server): Promise<void> => {
    all.delete(server);
    await server.stop();
    size -= 1;
  };
  const lend = async (): Promise<Server> => {
    for (;;) {
      const server = idle.pop();
      if (server) return server;
      if (restoring === 0 && size < most) return startAnother();
      await once(changes, 'freed');
    }
  };
  const giveBack = async (server: Server): Promise<void> => {
    restoring += 1;
    const isAsBefore = await restore(server).catch(() => false); // it did not answer
    if (isAsBefore) idle.push(server);
    else await end(server);
    restoring -= 1;
    changes.emit('freed');
  };
  const serve = async (socket: Socket): Promise<void> => {
    const closed = once(socket, 'close');
    socket.on('error', () => undefined).resume();
    const tell = (lent: Lent): void => void socket.write(`${JSON.stringify(lent)}\n`);
    try {
      const server = await lend();
      tell({ directory: server.directory, address: server.address });
      await closed;
      await giveBack(server);
    } catch (error) {
      tell({ error: String(error) });
      socket.end();
    }
  };
  const listener = createServer((socket) => void serve(socket)).listen(path);
  await once(listener, 'listening');
  const stop = async (): Promise<void> => {
    listener.close();
    await Promise.all([...all].map(end));
  };
  return { stop, [Symbol.asyncDispose]: stop };
};
