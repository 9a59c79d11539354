import { areas, type Dashboard, lines, quantiles, stat } from '../dashboard.ts';
import { AGENT_JOB } from '../jobs.ts';

const NODE = 'node="$node"';
const AGENT = `job="${AGENT_JOB}",${NODE}`;

const whatIsPlanned: Dashboard['rows'][number] = {
  title: 'Does what is planned stand in the kernel?',
  panels: [
    lines(
      {
        ...{ title: 'Problems that the agent reports', unit: 'short' },
        description: 'By reason, as in the conditions of the Node, which have the details. None: nothing is shown.',
      },
      [`sum by (reason) (unbounded_agent_problems{${NODE}})`, '{{reason}}'],
    ),
    lines(
      {
        ...{ title: 'Size of the plans', unit: 'short' },
        description: 'Entries of the last plan of each section, by kind. It follows the cluster.',
      },
      [`max by (section, kind) (unbounded_agent_plan_entries{${NODE}})`, '{{section}}: {{kind}}'],
    ),
    lines(
      {
        ...{ title: 'Writes into the kernel', unit: 'ops' },
        description: 'Steady ones without changes in the cluster: another program undoes what the agent writes.',
      },
      [
        `sum by (section, subject) (rate(unbounded_agent_kernel_writes_total{${NODE}}[$__rate_interval]))`,
        '{{section}}: {{subject}}',
      ],
    ),
    lines(
      {
        ...{ title: 'eBPF maps in use', unit: 'percentunit', bad: { from: 0.8 } },
        description: 'Entries of each map by those for which it has room. Packets for what does not fit are dropped.',
      },
      [
        `max by (map) (unbounded_bpf_map_entries{${NODE}}) / max by (map) (unbounded_bpf_map_max_entries{${NODE}})`,
        '{{map}}',
      ],
    ),
    lines(
      {
        ...{ title: 'Processes of node-keeper', unit: 'short' },
        description: 'User-space tunnels and the relay’s proxies. stopped: they end again and again; see its log.',
      },
      [`sum by (kind, state) (unbounded_keeper_processes{${NODE}})`, '{{kind}} {{state}}'],
    ),
  ],
};

export const nodeDashboard: Dashboard = {
  uid: 'unbounded-node',
  title: 'Unbounded / Node',
  description: 'Does the agent of one node work, does the node reach its peers, and what does it drop?',
  variables: [{ name: 'node', label: 'Node', series: `up{job="${AGENT_JOB}"}`, valuesOf: 'node', isMultiple: false }],
  rows: [
    {
      title: 'Does the agent work?',
      panels: [
        stat(
          {
            ...{ title: 'Agent answers', unit: 'short', bad: { below: 1 } },
            description: '0: Prometheus does not reach it. The node forwards as it was planned last, if it runs.',
          },
          `max(up{${AGENT}})`,
        ),
        stat(
          {
            ...{ title: 'Runs since', unit: 's' },
            description: 'Time since the agent started. Restarts do not interrupt traffic.',
          },
          `time() - max(process_start_time_seconds{${AGENT}})`,
        ),
        stat(
          {
            ...{ title: 'Unwritten state files', unit: 'short', bad: { from: 1 } },
            description: 'The disk is full, read-only or broken: a restart would begin with an older state.',
          },
          `max(unbounded_state_files_unwritten{${NODE}})`,
        ),
        stat(
          {
            ...{ title: 'Age of the WireGuard key', unit: 's' },
            description: 'docs/operations.md says how keys are rotated.',
          },
          `max(unbounded_wireguard_key_age_seconds{${NODE}})`,
        ),
        lines(
          {
            ...{ title: 'Age of the last success of each section', unit: 's' },
            description:
              'Above 300 s: the section fails, and its changes are not applied. The condition of the Node says why.',
          },
          [
            `time() - max by (section) (unbounded_agent_section_last_success_timestamp_seconds{${NODE}})`,
            '{{section}}',
          ],
        ),
        lines(
          {
            ...{ title: 'Failed passes', unit: 'short' },
            description: 'Within 10 minutes, by section. The log of the agent has the stack.',
          },
          [
            `sum by (section) (increase(unbounded_agent_section_passes_total{${NODE},result="failure"}[10m]))`,
            '{{section}}',
          ],
        ),
      ],
    },
    {
      title: 'Does it reach its peers?',
      panels: [
        areas(
          {
            ...{ title: 'Peers by state', unit: 'short' },
            description: 'Unhealthy ones do not answer probes; the status page says which they are.',
          },
          [`sum by (state) (unbounded_health_peers{${NODE}})`, '{{state}}'],
        ),
        quantiles(
          {
            ...{ title: 'Round-trip time', unit: 's' },
            description: 'Of the probes that this node sent.',
          },
          'unbounded_health_rtt_seconds',
          `{${NODE}}`,
        ),
        areas(
          {
            ...{ title: 'Paths by direct and relay', unit: 'short' },
            description: 'relay: UDP does not get through to these peers. Open the port, or accept the latency.',
          },
          [`sum by (path) (unbounded_wireguard_peer_paths{${NODE}})`, '{{path}}'],
        ),
        areas(
          {
            ...{ title: 'WireGuard peers by their latest handshake', unit: 'short' },
            description:
              'old: more than 180 s ago, so that no session is in force. never: keys or endpoints do not fit.',
          },
          [`sum by (handshake) (unbounded_wireguard_peers{${NODE}})`, '{{handshake}}'],
        ),
        areas(
          {
            ...{ title: 'Gateways by whether echoes return', unit: 'short' },
            description: 'All false: this node does not forward, or its gateways are away. Some: those gateways.',
          },
          [
            `sum by (family, returned) (unbounded_health_echo_gateways{${NODE}})`,
            'IPv{{family}} returned: {{returned}}',
          ],
        ),
      ],
    },
    {
      title: 'Why are packets dropped?',
      panels: [
        areas(
          {
            ...{ title: 'Packets into the overlay', unit: 'pps' },
            description: 'What the node sends to others, by protocol.',
          },
          [`sum by (protocol) (rate(unbounded_overlay_sent_packets_total{${NODE}}[$__rate_interval]))`, '{{protocol}}'],
        ),
        areas(
          {
            ...{ title: 'Dropped', unit: 'pps' },
            description:
              'By the eBPF programs and by our nftables tables, by reason. docs/operations.md, "What nodes drop".',
          },
          [
            `sum by (reason) (rate(unbounded_overlay_dropped_packets_total{${NODE}}[$__rate_interval]))`,
            'eBPF: {{reason}}',
          ],
          [
            `sum by (reason) (rate(unbounded_firewall_dropped_packets_total{${NODE}}[$__rate_interval]))`,
            'nftables: {{reason}}',
          ],
        ),
        areas(
          {
            ...{ title: 'Dropped frames of pods and of stretched LANs', unit: 'pps' },
            description:
              'Frames with addresses that are not the sender’s, by reason. Events of the Node name the pods.',
          },
          [`sum by (reason) (rate(unbounded_pod_frames_dropped_total{${NODE}}[$__rate_interval]))`, 'pods: {{reason}}'],
          [
            `sum by (reason) (rate(unbounded_l2_received_frames_dropped_total{${NODE}}[$__rate_interval]))`,
            'LANs: {{reason}}',
          ],
        ),
        lines(
          {
            ...{ title: 'What others changed and was put back', unit: 'short' },
            description: 'Within 10 minutes. Many: another program of the node works against the agent; find it.',
          },
          [`sum by (what) (increase(unbounded_agent_restorations_total{${NODE}}[10m]))`, '{{what}}'],
        ),
      ],
    },
    whatIsPlanned,
    {
      title: 'Has the agent enough processor time and memory?',
      panels: [
        lines(
          {
            ...{ title: 'Processor time and delay of the event loop', unit: 's' },
            description: 'Processor time for each second, and how late 99 % of the timers are at most.',
          },
          [`sum(rate(process_cpu_seconds_total{${AGENT}}[$__rate_interval]))`, 'processor time'],
          [`max(nodejs_eventloop_lag_p99_seconds{${AGENT}})`, 'delay'],
        ),
        lines(
          {
            ...{ title: 'Memory', unit: 'bytes' },
            description: 'Resident memory of the agent. Near the limit of its container it is killed and starts again.',
          },
          [`max(process_resident_memory_bytes{${AGENT}})`, 'resident'],
        ),
      ],
    },
  ],
};
