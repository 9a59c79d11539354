import { existsSync, readFileSync } from 'node:fs';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent, type RequestOptions } from 'node:https';

import { KubeConfig } from '@kubernetes/client-node';
import { parse } from 'yaml';

/** Where an API server is and how to prove who we are. */
export interface Connection {
  readonly server: URL;
  /** TLS material and headers for one request. Credentials are read again when they may have changed. */
  credentials(): Promise<RequestOptions>;
  close(): void;
}

/** No cluster could be found, or its file is not usable. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

interface RawUser {
  readonly name?: string;
  readonly user?: { readonly tokenFile?: string };
}

/**
 * client-node does not know `tokenFile` of a kubeconfig's user, which kubectl and client-go read again when it is
 * rotated. Its own provider of that name (made for service accounts) does the same.
 */
const useTokenFile = (config: KubeConfig, kubeconfig: string): void => {
  const { users = [] } = (parse(readFileSync(kubeconfig, 'utf8')) ?? {}) as { users?: readonly RawUser[] };
  const current = config.getCurrentUser();
  const tokenFile = users.find(({ name }) => name === current?.name)?.user?.tokenFile;
  if (!current || tokenFile === undefined) return;
  const user = { ...current, authProvider: { name: 'tokenFile', config: { tokenFile } } };
  config.loadFromOptions({
    clusters: config.clusters,
    contexts: config.contexts,
    currentContext: config.currentContext,
    users: config.users.map((known) => (known.name === current.name ? user : known)),
  });
};

const loadKubeConfig = (kubeconfig: string | undefined): KubeConfig => {
  const config = new KubeConfig();
  if (kubeconfig !== undefined) {
    if (!existsSync(kubeconfig)) throw new ConnectionError(`kubeconfig "${kubeconfig}" does not exist`);
    config.loadFromFile(kubeconfig);
    useTokenFile(config, kubeconfig);
  } else config.loadFromDefault(); // KUBECONFIG, ~/.kube/config, the pod's service account
  return config;
};

const TCP_KEEP_ALIVE_MS = 15_000;

/** A token file may end in a newline, which no header may; kubectl and client-go leave it out as well. */
const trimToken = (headers: Record<string, string>): void => {
  if (headers['Authorization'] !== undefined) headers['Authorization'] = headers['Authorization'].trim();
};

/**
 * From a kubeconfig file or, without one, from KUBECONFIG, the home directory or the pod's service account. A token
 * file (service account) is read again within a minute of its rotation.
 * @throws ConnectionError
 */
export const connect = (kubeconfig?: string): Connection => {
  const config = loadKubeConfig(kubeconfig);
  const cluster = config.getCurrentCluster();
  if (!cluster) {
    throw new ConnectionError(
      'no cluster is configured: give --kubeconfig, set KUBECONFIG, or run in a pod with a service account',
    );
  }
  const server = new URL(cluster.server);
  // One pool of connections for all requests; TLS material is part of the pool's key, so a rotated certificate gets new ones.
  const agent =
    server.protocol === 'http:'
      ? new HttpAgent({ keepAlive: true })
      : new HttpsAgent({ keepAlive: true, keepAliveMsecs: TCP_KEEP_ALIVE_MS });
  return {
    server,
    credentials: async () => {
      const headers: Record<string, string> = {};
      const options: RequestOptions = { headers };
      await config.applyToHTTPSOptions(options);
      trimToken(headers);
      if (cluster.proxyUrl) return options; // its agent knows the way through the proxy
      return { ...options, agent };
    },
    close: () => agent.destroy(),
  };
};
