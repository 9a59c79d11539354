import { join } from 'node:path';
import { type ConfigOf, controlPlaneOptions, option, path, port, text, whole } from '@unbounded/config';
import { DEFAULT_NAMESPACE } from '@unbounded/crds';

const { kubeconfig, healthPort, logLevel } = controlPlaneOptions;

/** Beside the bundle in the checkout and in the image. */
const dashboard = join(import.meta.dirname, '../../dashboard/dist');

export const statusAggregatorOptions = {
  ...{ kubeconfig, healthPort, logLevel },
  port: option(port(9443), 'TCP port of reports, view and updates (HTTPS); 0 takes a free one.'),
  namespace: option(
    text(process.env['POD_NAMESPACE'] ?? DEFAULT_NAMESPACE),
    'Namespace of the Service, of the certificate and of the agents’ ServiceAccount; POD_NAMESPACE when not given.',
  ),
  service: option(text('status-aggregator'), 'Name of the Service: for whom the certificate is.'),
  agentServiceAccount: option(text('node-dataplane'), 'ServiceAccount of the agents: nobody else may report.'),
  tlsCert: option(path, 'Certificate chain in PEM, read again when it changes; not set: one of its own, in a Secret.'),
  tlsKey: option(path, 'Private key of the certificate, PEM.'),
  redisUrl: option(
    path,
    'Redis by which replicas share reports and the view: redis://[USER@]HOST[:PORT][/DATABASE], or rediss:// for TLS; not set: one replica, in memory.',
  ),
  redisPasswordFile: option(path, 'File with the password of Redis, read again at each connection.'),
  redisCaFile: option(path, 'Authorities of the certificate of Redis, PEM; not set: those that Node trusts.'),
  redisCluster: option(text('default'), 'Name of this cluster in Redis, where several share one.'),
  maxClients: option(whole({ min: 1, max: 10_000 }, 200), 'Dashboards that may follow the view at once.'),
  dashboardDir: option(
    text(dashboard),
    'Directory of the web page, which is served at /; without it the API works alone.',
  ),
} as const;

export type StatusAggregatorConfig = ConfigOf<typeof statusAggregatorOptions>;
