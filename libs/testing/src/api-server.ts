import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';

import type { Cluster } from '@unbounded/kube';

import { adminKubeconfig, type ServerProcess, startServer, writeKubeconfig } from './api-server-process.ts';
import { COMMAND_MEMORY } from './go-memory.ts';

/** A real kube-apiserver with its etcd, on loopback. */
export interface ApiServer extends AsyncDisposable {
  /** Path of a kubeconfig of a member of system:masters. */
  readonly kubeconfig: string;
  readonly cluster: Cluster;
  /** Path of a kubeconfig that uses this bearer token. */
  kubeconfigFor(token: string): string;
  /** Runs kubectl as a member of system:masters; its output. @throws Error with kubectl's message */
  kubectl(...args: string[]): string;
  /** Applies manifests (YAML text), with more arguments of `kubectl apply`. @throws Error with kubectl's message */
  apply(text: string, ...args: string[]): string;
  /** A token of a service account; bound to a Node it says on which node its holder is. */
  serviceAccountToken(namespace: string, name: string, boundNode?: string): Promise<string>;
  stop(): Promise<void>;
}

/** Of this test file alone. Everything dies with the process that started it. */
export interface OwnApiServer extends ApiServer {
  /** Kills the API server (etcd keeps the data); `start` brings it back at the same address. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

/** TokenRequest of authentication.k8s.io/v1. */
const requestToken = async (cluster: Cluster, namespace: string, name: string, boundNode?: string): Promise<string> => {
  const boundObjectRef = boundNode === undefined ? undefined : { apiVersion: 'v1', kind: 'Node', name: boundNode };
  const answer = await cluster.transport.send({
    method: 'POST',
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: [], boundObjectRef } },
  });
  return (answer as { status: { token: string } }).status.token;
};

/** @param server whose processes run @param end what `stop` does */
export const useServer = (
  { directory, address, cluster }: Pick<ServerProcess, 'directory' | 'address' | 'cluster'>,
  end: () => Promise<void>,
): ApiServer => {
  const kubeconfig = adminKubeconfig(directory);
  const users = mkdtempSync(join(directory, 'users-'));
  let issued = 0;
  const kubectl = (args: readonly string[], input = ''): string =>
    execFileSync(join(directory, 'kubectl'), args, {
      encoding: 'utf8',
      env: { KUBECONFIG: kubeconfig, HOME: directory, ...COMMAND_MEMORY },
      input,
      stdio: 'pipe',
    });
  return {
    kubeconfig,
    cluster,
    kubeconfigFor: (token) => {
      const path = join(users, `${++issued}.kubeconfig`);
      writeKubeconfig(path, { directory, address, token });
      return path;
    },
    kubectl: (...args) => kubectl(args),
    apply: (text, ...args) => kubectl(['apply', ...args, '-f', '-'], text),
    serviceAccountToken: (namespace, name, boundNode) => requestToken(cluster, namespace, name, boundNode),
    stop: end,
    [Symbol.asyncDispose]: end,
  };
};

export interface ApiServerOptions {
  /** More flags of kube-apiserver. */
  readonly flags?: readonly string[];
}

/**
 * One that has nothing but what it makes itself, for a test that kills it, changes its kinds or needs flags; others take less time with
 * `borrowApiServer`. Takes about 4 s. Call it once for a test file, in `beforeAll`, and `stop()` in `afterAll`.
 */
export const startApiServer = async ({ flags = [] }: ApiServerOptions = {}): Promise<OwnApiServer> => {
  const server = await startServer(flags);
  return { ...useServer(server, () => server.stop()), kill: () => server.kill(), start: () => server.start() };
};
