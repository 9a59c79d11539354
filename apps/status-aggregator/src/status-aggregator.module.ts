import { randomUUID } from 'node:crypto';
import { hostModule, type HostPart, type HostServices } from '@unbounded/host';
import { certificateSource } from '@unbounded/host/certificate';
import { type Cluster, configMaps, secrets } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import { parseForwarding, parsePush, statusSchemas } from '@unbounded/status';
import { createAgentAccess } from './access/agent-access.ts';
import { createReviews } from './access/reviews.ts';
import { createViewerAccess } from './access/viewer-access.ts';
import type { ApiOptions } from './api/api.options.ts';
import { createApiPart } from './api/api.part.ts';
import { edgeMetrics } from './api/edge-metrics.ts';
import { type ClusterPart, followCluster } from './cluster/cluster-part.ts';
import { createLocalForwarding } from './forwarding/local-forwarding.ts';
import { createHeldReports, type HeldReports } from './reports/held-reports.ts';
import type { ForwardingExchange, ViewStream } from './intake.port.ts';
import { shareByRedis } from './redis/share-by-redis.ts';
import { parseRedisUrl } from './redis/redis-url.ts';
import type { StatusAggregatorConfig } from './status-aggregator.config.ts';
import { servingCertificate } from './tls/serving-certificate.ts';
import { createViewComposer } from './view/view-composer.ts';
import { createViewHistory } from './view/view-history.ts';

const CLOCKS = { elapsed: () => performance.now(), now: () => new Date() };

interface Certificate {
  /** What makes it, before what serves it. */
  readonly parts: readonly HostPart[];
  readonly current: ApiOptions['certificate'];
}

const certificateOf = (config: StatusAggregatorConfig, cluster: Cluster, { logger }: HostServices): Certificate => {
  const { namespace, service, tlsCert, tlsKey } = config;
  if ((tlsCert === undefined) !== (tlsKey === undefined))
    throw new Error('--tls-cert and --tls-key must both be set, or neither');
  if (tlsCert !== undefined && tlsKey !== undefined)
    return { parts: [], current: certificateSource({ cert: tlsCert, key: tlsKey }, logger) };
  const part = servingCertificate({
    secrets: cluster.client(secrets),
    configMaps: cluster.client(configMaps),
    ...{ namespace, service, secretName: `${service}-tls`, configMapName: `${service}-ca` },
    now: CLOCKS.now,
    logger,
  });
  return { parts: [part], current: part.certificate };
};

interface Status {
  readonly reports: HeldReports;
  readonly view: ViewStream;
  readonly forwarding: ForwardingExchange;
  /** What keeps them up to date. */
  readonly part: HostPart;
}

const statusOf = (config: StatusAggregatorConfig, cluster: ClusterPart, services: HostServices): Status => {
  const { logger, metrics } = services;
  const objects = () => cluster.objects();
  const { redisUrl, redisPasswordFile: passwordFile, redisCaFile: caFile, redisCluster } = config;
  if (redisUrl !== undefined) {
    const connection = { address: parseRedisUrl(redisUrl), passwordFile, caFile };
    return shareByRedis({ connection, cluster: redisCluster, objects, clocks: CLOCKS, logger, metrics });
  }
  const reports = createHeldReports(CLOCKS);
  const history = createViewHistory(randomUUID().slice(0, 8));
  const part = createViewComposer({ objects, reports, history, now: CLOCKS.now, logger });
  const view = { ...history, notices: () => part.notices() };
  return { reports, view, forwarding: createLocalForwarding(CLOCKS.elapsed), part };
};

const createParts = (config: StatusAggregatorConfig, services: HostServices): readonly HostPart[] => {
  const { logger } = services;
  const metrics = edgeMetrics(services.metrics);
  const cluster = openCluster({ kubeconfig: config.kubeconfig, metrics: services.metrics });
  const objects = followCluster(cluster, logger);
  const { reports, view, forwarding, part } = statusOf(config, objects, services);
  const certificate = certificateOf(config, cluster, services);
  const access = { reviews: createReviews({ cluster, logger }), now: CLOCKS.now, count: metrics.reviewed };
  const account = { namespace: config.namespace, name: config.agentServiceAccount };
  const api = createApiPart({
    port: config.port,
    certificate: certificate.current,
    agentAccess: createAgentAccess({ ...access, account }),
    viewerAccess: createViewerAccess(access),
    ...{ parsePush, intake: reports, view, reports, schemas: statusSchemas() },
    ...{ forwarding, parseForwarding },
    ...{ logger, metrics },
    dashboardDir: config.dashboardDir,
    streamLimits: { clients: config.maxClients },
  });
  return [objects, ...certificate.parts, part, api];
};

export const statusAggregatorModule = (config: StatusAggregatorConfig) => (services: HostServices) =>
  hostModule(() => createParts(config, services));
