import { areas, type Dashboard, lines, quantiles, stat } from '../dashboard.ts';
import { OUR_JOBS, REPLICATED_JOBS } from '../jobs.ts';

const JOB = 'job=~"$program"';

export const controlPlaneDashboard: Dashboard = {
  uid: 'unbounded-control-plane',
  title: 'Unbounded / Control plane',
  description: 'Does every program run and lead, does it keep up, and does the API server answer?',
  variables: [{ name: 'program', label: 'Program', series: `up{${OUR_JOBS}}`, valuesOf: 'job', isMultiple: true }],
  rows: [
    {
      title: 'Does every program run?',
      panels: [
        stat(
          {
            ...{ title: 'Programs without a replica', unit: 'short', bad: { from: 1 } },
            description: 'Programs of which no replica answers: what they do is not done. Traffic goes on as it is.',
          },
          `count(max by (job) (up{${REPLICATED_JOBS},${JOB}}) == 0) or vector(0)`,
        ),
        stat(
          {
            ...{ title: 'Leases without a leader', unit: 'short', bad: { from: 1 } },
            description: 'Replicas run, and none leads: kubectl get leases shows who held the lease last.',
          },
          `count(max by (job, name) (leader_election_master_status{${JOB}}) == 0) or vector(0)`,
        ),
        stat(
          {
            ...{ title: 'Status aggregators without Redis', unit: 'short', bad: { from: 1 } },
            description: 'Each of them shows the nodes that report to it alone. Traffic is not concerned.',
          },
          'count(unbounded_status_redis_up == 0) or vector(0)',
        ),
        stat(
          {
            ...{ title: 'Tailnet devices that do not run', unit: 'short', bad: { from: 1 } },
            description: 'They wait to log in, or no node has reported them: kubectl describe tailnetdevice.',
          },
          'sum(max by (state) (unbounded_tailnet_devices{state=~"NeedsLogin|Unknown"})) or vector(0)',
        ),
        lines(
          {
            ...{ title: 'Replicas that answer', unit: 'short' },
            description: 'Of each program but the agents. One less for a minute is an update.',
          },
          [`sum by (job) (up{${REPLICATED_JOBS},${JOB}})`, '{{job}}'],
        ),
        lines(
          {
            ...{ title: 'Restarts', unit: 'short' },
            description: 'Within an hour, in the same pod. A crash, too little memory, or a liveness probe that fails.',
          },
          [`sum by (job) (changes(process_start_time_seconds{${JOB}}[1h]))`, '{{job}}'],
        ),
      ],
    },
    {
      title: 'Does it keep up?',
      panels: [
        lines(
          {
            ...{ title: 'Depth of work queues', unit: 'short' },
            description: 'The 20 deepest. A queue that only grows: work comes faster than it is done.',
          },
          [`topk(20, max by (job, name) (workqueue_depth{${JOB}}))`, '{{job}} {{name}}'],
        ),
        quantiles(
          {
            ...{ title: 'Wait in work queues', unit: 's' },
            description: 'How long an object waits before a program looks at it.',
          },
          'workqueue_queue_duration_seconds',
          `{${JOB}}`,
        ),
        areas(
          {
            ...{ title: 'Reconciliations', unit: 'ops' },
            description: 'By result. A steady share of error: the log of the controller says why.',
          },
          [`sum by (result) (rate(controller_runtime_reconcile_total{${JOB}}[$__rate_interval]))`, '{{result}}'],
        ),
        lines(
          {
            ...{ title: 'Controllers that fail most', unit: 'ops' },
            description: 'Ten controllers with most failed reconciliations.',
          },
          [
            `topk(10, sum by (controller) (rate(controller_runtime_reconcile_total{${JOB},result="error"}[$__rate_interval])))`,
            '{{controller}}',
          ],
        ),
      ],
    },
    {
      title: 'Does the API server answer?',
      panels: [
        areas(
          {
            ...{ title: 'Requests by status code', unit: 'reqps' },
            description: '<error>: no answer. 403: the chart is of another version. 409 is a conflict and usual.',
          },
          [`sum by (code) (rate(rest_client_requests_total{${JOB}}[$__rate_interval]))`, '{{code}}'],
        ),
        quantiles(
          {
            ...{ title: 'Latency of requests', unit: 's' },
            description: 'Of all requests but watches. Seconds: the API server is overloaded, or the way to it is bad.',
          },
          'rest_client_request_duration_seconds',
          `{${JOB}}`,
        ),
        lines(
          {
            ...{ title: 'Refused writes and dropped Events', unit: 'short' },
            description: 'Within 10 minutes. Refused writes: rights or kinds do not fit the version of the program.',
          },
          [`sum by (kind) (increase(unbounded_net_controller_refused_writes_total{${JOB}}[10m]))`, 'refused: {{kind}}'],
          [`sum(increase(unbounded_events_dropped_total{${JOB}}[10m]))`, 'dropped Events'],
        ),
      ],
    },
    {
      title: 'Is the live view complete?',
      panels: [
        areas(
          {
            ...{ title: 'Reports of nodes', unit: 'ops' },
            description:
              'To the status aggregator, by result. Failed and refused ones leave nodes as they were in the view.',
          },
          ['sum by (result) (rate(unbounded_status_pushes_total[$__rate_interval]))', '{{result}}'],
        ),
        areas(
          {
            ...{ title: 'Refused requests', unit: 'ops' },
            description: 'By reason: tokens of another audience, or a client that asks too often.',
          },
          ['sum by (reason) (rate(unbounded_status_rejections_total[$__rate_interval]))', '{{reason}}'],
        ),
      ],
    },
  ],
};
