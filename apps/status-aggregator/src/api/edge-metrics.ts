import type { Metrics } from '@unbounded/telemetry';

import type { CountReview } from '../access/review-count.ts';
import type { RefusalReason } from './refusal.ts';

export type DisconnectReason =
  | 'client'
  | 'shutdown'
  | 'slow'
  | 'ping-timeout'
  | 'policy'
  | 'unauthenticated'
  | 'forbidden'
  | 'review-unavailable';

/** What the edge counts. Labels are of bounded sets. */
export interface EdgeMetrics {
  pushed(result: 'accepted' | 'resync' | 'invalid' | 'failed'): void;
  rejected(reason: RefusalReason): void;
  clients(count: number): void;
  disconnected(reason: DisconnectReason): void;
  readonly reviewed: CountReview;
}

export const edgeMetrics = (metrics: Metrics): EdgeMetrics => {
  const count = <L extends string>(name: string, help: string, labels: readonly L[]) =>
    metrics.counter({ name: `unbounded_status_${name}`, help, labels });
  const pushes = count('pushes_total', 'Reports of nodes, by result.', ['result']);
  const rejections = count('rejections_total', 'Requests and WebSocket upgrades refused, by reason.', ['reason']);
  const disconnects = count('client_disconnects_total', 'WebSocket clients disconnected, by reason.', ['reason']);
  const reviews = count('token_reviews_total', 'Reviews asked of the API server, by kind and result.', [
    'kind',
    'result',
  ]);
  const clients = metrics.gauge({ name: 'unbounded_status_clients', help: 'WebSocket clients of the live view.' });
  clients.set(0);
  return {
    pushed: (result) => pushes.inc({ result }),
    rejected: (reason) => rejections.inc({ reason }),
    clients: (value) => clients.set(value),
    disconnected: (reason) => disconnects.inc({ reason }),
    reviewed: (kind, result) => reviews.inc({ kind, result }),
  };
};
