import type { HostPart } from '@unbounded/host';
import type { ViewInputs } from '@unbounded/status';
import type { Logger, Metrics } from '@unbounded/telemetry';
import { createLocalForwarding } from '../forwarding/local-forwarding.ts';
import type { ForwardingExchange, ViewStream } from '../intake.port.ts';
import type { HeldReports, ReportClocks } from '../reports/held-reports.ts';
import { createForwardingStore } from './forwarding-store.ts';
import { redisKeys } from './keys.ts';
import { createRedisLink, type RedisLinkOptions } from './redis-link.ts';
import { redisMetrics } from './redis-metrics.ts';
import { createReportStore } from './report-store.ts';
import { createReplicatedReports } from './replicated-reports.ts';
import { createReplication, type ReplicationOptions } from './replication.part.ts';
import { createReplicatedView } from './replicated-view.ts';
import { createReplicatedForwarding } from './replicated-forwarding.ts';
import { createViewStore } from './view-store.ts';

export interface ShareOptions extends Pick<ReplicationOptions, 'composeEveryMs' | 'followEveryMs' | 'notRenewedMs'> {
  readonly connection: Pick<RedisLinkOptions, 'address' | 'passwordFile' | 'caFile' | 'commandTimeoutMs'>;
  /** Its name in Redis. */
  readonly cluster: string;
  readonly objects: () => Omit<ViewInputs, 'reports'> | undefined;
  readonly clocks: ReportClocks;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly leaseMs?: number;
}

const AWAY = 'Redis is away: the view stands as it was, and reports are held until Redis is back';
const NOT_RENEWED =
  'the view stands as it was: Redis does not store another one, or none can be made; the logs of the replicas have the reason';

interface SharedStatus {
  readonly reports: HeldReports;
  readonly view: ViewStream;
  readonly forwarding: ForwardingExchange;
  readonly part: HostPart;
}

/** Reports and the view that all replicas have in common. */
export const shareByRedis = (options: ShareOptions): SharedStatus => {
  const { connection, cluster, clocks, logger, leaseMs, ...rest } = options;
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(cluster))
    throw new Error('--redis-cluster: must have 1 to 64 letters, digits, dots, hyphens and underscores');
  const metrics = redisMetrics(options.metrics);
  const link = createRedisLink({ ...connection, metrics, logger });
  const keys = redisKeys(cluster);
  const ofReports = createReportStore(link, keys, metrics.skipped);
  const ofView = createViewStore(link, keys, { reports: ofReports, skipped: metrics.skipped });
  const reports = createReplicatedReports({ clocks, store: ofReports, isUp: () => link.isUp, metrics });
  const view = createReplicatedView({
    ...{ store: ofView, metrics, now: clocks.now, logger },
    ...(leaseMs === undefined ? {} : { leaseMs }),
  });
  const part = createReplication({
    ...rest,
    ...{ link, stores: { reports: ofReports, view: ofView }, reports, view, clocks, metrics, logger },
  });
  const notices = (): readonly string[] => {
    if (!link.isUp) return [AWAY];
    return part.isRenewed ? [] : [NOT_RENEWED];
  };
  const forwarding = createReplicatedForwarding({
    store: createForwardingStore(link, keys, metrics.skipped),
    local: createLocalForwarding(clocks.elapsed),
    isUp: () => link.isUp,
    elapsed: clocks.elapsed,
  });
  return { reports, view: { ...view.relayed, notices }, forwarding, part };
};
