import type { AlertGroup } from '../alert.ts';
import { OUR_JOBS, REPLICATED_JOBS } from '../jobs.ts';

const refused = `rest_client_requests_total{${OUR_JOBS},code=~"<error>|403|5.."}`;

/** Controllers, the status aggregator, and what all programs need of the API server. */
export const controlPlaneAlerts: AlertGroup = {
  name: 'unbounded-control-plane',
  alerts: [
    {
      name: 'UnboundedProgramDown',
      expr: `max by (job) (up{${REPLICATED_JOBS}}) == 0`,
      for: '5m',
      severity: 'critical',
      summary: 'No replica of {{ $labels.job }} answers.',
      description:
        'Prometheus has reached no replica of {{ $labels.job }} for 5 minutes. Traffic goes on as it is; what this program does is not done until one runs.',
    },
    {
      name: 'UnboundedLeaderMissing',
      expr: `max by (job, name) (leader_election_master_status{${OUR_JOBS}}) == 0`,
      for: '5m',
      severity: 'critical',
      summary: 'No replica of {{ $labels.job }} leads.',
      description:
        'Replicas of {{ $labels.job }} run, and none holds the lease {{ $labels.name }}: nothing of what it does is done.',
    },
    {
      name: 'UnboundedAPIErrors',
      expr: `sum by (job) (rate(${refused}[5m])) / sum by (job) (rate(rest_client_requests_total{${OUR_JOBS}}[5m])) > 0.05`,
      for: '15m',
      severity: 'warning',
      summary: '{{ $value | humanizePercentage }} of the requests of {{ $labels.job }} to the API server fail.',
      description:
        'Requests of {{ $labels.job }} are refused (403), fail at the API server (5xx) or do not reach it, {{ $value | humanizePercentage }} of them for 15 minutes.',
    },
    {
      name: 'UnboundedWritesRefused',
      expr: 'sum by (job, kind) (increase(unbounded_net_controller_refused_writes_total[5m])) > 0',
      for: '10m',
      severity: 'warning',
      summary: 'The API server refuses what {{ $labels.job }} writes to {{ $labels.kind }}.',
      description:
        'The API server has refused writes of {{ $labels.job }} to {{ $labels.kind }} for 10 minutes: rights, kinds or policies do not fit the version of the program.',
    },
    {
      name: 'UnboundedRedisDown',
      expr: 'min by (pod) (unbounded_status_redis_up) == 0',
      for: '5m',
      severity: 'warning',
      summary: 'Redis does not answer the status aggregator {{ $labels.pod }}.',
      description:
        'The replica {{ $labels.pod }} shows the nodes that report to it alone. Traffic is not concerned, and the view is complete again once Redis answers.',
    },
    {
      name: 'UnboundedStatusReportsFailing',
      expr: 'count(sum by (node) (increase(unbounded_status_pushes_sent_total{result="failed"}[5m])) > 6)',
      for: '10m',
      severity: 'warning',
      summary: '{{ $value | humanize }} nodes cannot report to the status aggregator.',
      description:
        'The reports of {{ $value | humanize }} nodes fail, so that the dashboard shows them as they were. Traffic is not concerned.',
    },
  ],
};
