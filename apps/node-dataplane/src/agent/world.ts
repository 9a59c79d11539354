import type { KindTable } from '@unbounded/crds';
import type { Cluster } from '@unbounded/kube';
import type { HostServices } from '@unbounded/host';
import type { AgentConfig } from '../agent.config.ts';
import { createAgentEvents } from '../world/agent-events.ts';
import { createClusterReporter } from '../world/cluster-reporter.ts';
import { createClusterSource, createNodeSource } from '../world/cluster-source.ts';
import { createFileSource } from '../world/file-source.ts';
import type { Reporter } from '../world/reporter.port.ts';
import type { InputFilters, WorldSource } from '../world/source.port.ts';

/** Where objects come from and reports go to: the cluster, or a directory. */
export interface World {
  readonly reporter: Reporter;
  /** Undefined: a directory. */
  readonly cluster: Cluster | undefined;
  inputs<T extends KindTable>(kinds: T, filters?: InputFilters<T>): WorldSource<T>;
  close(): Promise<void>;
}

const openFiles = (folder: string, nodeName: string, { logger }: HostServices): World => ({
  reporter: { report: async () => undefined },
  cluster: undefined,
  inputs: (kinds) =>
    createFileSource(folder, {
      kinds,
      nodeName,
      onError: (error) =>
        logger.error({ error: error.message }, 'cannot read the manifests; keeping the previous objects'),
    }),
  close: async () => undefined,
});

export const openWorld = async (config: AgentConfig, services: HostServices): Promise<World> => {
  const { nodeName, manifestsDir, kubeconfig } = config;
  if (manifestsDir !== undefined) return openFiles(manifestsDir, nodeName, services);
  const { logger, metrics } = services;
  const { openCluster } = await import('@unbounded/kube/open-cluster'); // files need nothing of it
  const cluster = openCluster({ kubeconfig, metrics });
  const own = createNodeSource(cluster, nodeName, logger);
  const events = createAgentEvents(cluster, { logger, metrics });
  return {
    reporter: createClusterReporter({ cluster, nodeName, node: () => own.node(), events }),
    cluster,
    inputs: (kinds, filters) => createClusterSource(cluster, kinds, { own, logger, ...(filters && { filters }) }),
    close: async () => {
      await own.stop();
      cluster.close();
    },
  };
};
