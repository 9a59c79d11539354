import type { Metrics } from '@unbounded/telemetry';

export type RedisOperation = 'connect' | 'load' | 'follow' | 'publish' | 'read' | 'forget' | 'compose' | 'request';
/** Why something in Redis was passed over. */
export type SkipReason = 'report' | 'report-entry' | 'view' | 'view-entry' | 'forwarding';

export interface RedisMetrics {
  readonly up: (isUp: boolean) => void;
  readonly failed: (operation: RedisOperation) => void;
  readonly skipped: (kind: SkipReason) => void;
  readonly loaded: () => void;
  readonly composing: (isComposer: boolean) => void;
}

export const redisMetrics = (metrics: Metrics): RedisMetrics => {
  const up = metrics.gauge({ name: 'unbounded_status_redis_up', help: '1 while Redis answers this replica.' });
  const errors = metrics.counter({
    name: 'unbounded_status_redis_errors_total',
    help: 'Operations of Redis that failed, by operation.',
    labels: ['operation'],
  });
  const skipped = metrics.counter({
    name: 'unbounded_status_redis_skipped_total',
    help: 'Values in Redis that are none of ours or are damaged, by kind.',
    labels: ['kind'],
  });
  const loads = metrics.counter({
    name: 'unbounded_status_redis_loads_total',
    help: 'Times that all reports and the view were read from Redis: at the start, after a lost connection or a gap.',
  });
  const composer = metrics.gauge({
    name: 'unbounded_status_composer',
    help: '1 while this replica composes the view for all.',
  });
  up.set(0);
  composer.set(0);
  return {
    up: (isUp) => up.set(isUp ? 1 : 0),
    failed: (operation) => errors.inc({ operation }),
    skipped: (kind) => skipped.inc({ kind }),
    loaded: () => loads.inc(),
    composing: (isComposer) => composer.set(isComposer ? 1 : 0),
  };
};
