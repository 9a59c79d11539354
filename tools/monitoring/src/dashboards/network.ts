import { areas, type Dashboard, lines, quantiles, stat } from '../dashboard.ts';
import { AGENT_JOB } from '../jobs.ts';

const agents = `up{job="${AGENT_JOB}"}`;

export const networkDashboard: Dashboard = {
  uid: 'unbounded-network',
  title: 'Unbounded / Network',
  description: 'Is traffic delivered between all sites, and if not, where to look?',
  variables: [],
  rows: [
    {
      title: 'Is traffic delivered?',
      panels: [
        stat(
          {
            ...{ title: 'Agents that answer', unit: 'percentunit', bad: { below: 0.99 } },
            description:
              'Share of the nodes whose agent Prometheus reaches. The alert UnboundedAgentDown names the others.',
          },
          `sum(${agents}) / count(${agents})`,
        ),
        stat(
          {
            ...{ title: 'Firing alerts', unit: 'short', bad: { from: 1 } },
            description:
              'Alerts of this network that fire, of all severities. Each leads to its section of the troubleshooting page.',
          },
          'count(ALERTS{alertname=~"Unbounded.+",alertstate="firing"}) or vector(0)',
        ),
        stat(
          {
            ...{ title: 'Nodes with unhealthy peers', unit: 'short', bad: { from: 1 } },
            description:
              'Nodes that get no reply from at least one peer. Many: a gateway or a site is away. See the dashboard Gateway pool.',
          },
          'count(sum by (node) (unbounded_health_peers{state="Unhealthy"}) > 0) or vector(0)',
        ),
        stat(
          {
            ...{ title: 'Nodes whose echoes do not return', unit: 'short', bad: { from: 1 } },
            description: 'A gateway of theirs does not forward: it is dead, or drops what it should forward.',
          },
          'count(sum by (node) (unbounded_health_echo_gateways{returned="false"}) > 0) or vector(0)',
        ),
        areas(
          {
            ...{ title: 'Packets into the overlay', unit: 'pps' },
            description:
              'Packets that nodes send to others, by protocol. A sudden end without an end of the load is a fault.',
          },
          ['sum by (protocol) (rate(unbounded_overlay_sent_packets_total[$__rate_interval]))', '{{protocol}}'],
        ),
        lines(
          {
            ...{ title: 'Packets out of tunnels', unit: 'pps' },
            description:
              'Packets from tunnels that passed source validation. What falls below the packets sent is lost on the way or dropped.',
          },
          ['sum(rate(unbounded_overlay_received_packets_total[$__rate_interval]))', 'received'],
        ),
        areas(
          {
            ...{ title: 'Probed peers by state', unit: 'short' },
            description:
              'Every probe of every node. Healthy and Degraded peers carry traffic; Unhealthy ones are replaced where there is another way.',
          },
          ['sum by (state) (unbounded_health_peers)', '{{state}}'],
        ),
        quantiles(
          {
            ...{ title: 'Round-trip time', unit: 's' },
            description:
              'Of probes between all nodes. A rise of the median is the networks between the sites; of 99 % alone, some paths or a relay.',
          },
          'unbounded_health_rtt_seconds',
        ),
      ],
    },
    {
      title: 'Why are packets dropped?',
      panels: [
        areas(
          {
            ...{ title: 'Dropped by eBPF programs', unit: 'pps' },
            description:
              'By reason: no_member is a group without a usable gateway, forged_source and unknown_source a wrong Site or an attempt.',
          },
          ['sum by (reason) (rate(unbounded_overlay_dropped_packets_total[$__rate_interval]))', '{{reason}}'],
        ),
        areas(
          {
            ...{ title: 'Dropped by the firewall of nodes', unit: 'pps' },
            description:
              'Our nftables tables, by reason. docs/operations.md, "What nodes drop", says what each keeps out.',
          },
          ['sum by (reason) (rate(unbounded_firewall_dropped_packets_total[$__rate_interval]))', '{{reason}}'],
        ),
        lines(
          {
            ...{ title: 'Nodes that drop most', unit: 'pps' },
            description:
              'Ten nodes, eBPF programs and firewall together. One node alone: look at its conditions. All of a site: at the Site.',
          },
          [
            'topk(10, sum by (node) (rate(unbounded_overlay_dropped_packets_total[$__rate_interval])) + sum by (node) (rate(unbounded_firewall_dropped_packets_total[$__rate_interval])))',
            '{{node}}',
          ],
        ),
        areas(
          {
            ...{ title: 'Frames of pods with addresses of others', unit: 'pps' },
            description:
              'Source validation dropped them, by what was wrong. The Event PodFramesDropped of the Node names the pod.',
          },
          ['sum by (reason) (rate(unbounded_pod_frames_dropped_total[$__rate_interval]))', '{{reason}}'],
        ),
      ],
    },
    {
      title: 'What changed?',
      panels: [
        lines(
          {
            ...{ title: 'Changes of peers to a state', unit: 'cps' },
            description:
              'How often peers go to each state. Steady changes to Unhealthy and back are a path that loses packets.',
          },
          ['sum by (to) (rate(unbounded_health_transitions_total[$__rate_interval]))', 'to {{to}}'],
        ),
        areas(
          {
            ...{ title: 'Paths by direct and relay', unit: 'short' },
            description:
              'WireGuard paths that can use a relay. A rise of relay: UDP is blocked somewhere; see the dashboard Relay.',
          },
          ['sum by (path) (unbounded_wireguard_peer_paths)', '{{path}}'],
        ),
        areas(
          {
            ...{ title: 'Versions of agents', unit: 'short' },
            description: 'Nodes by the version of their agent: how far an update is.',
          },
          ['count by (version) (unbounded_build_info{program="node-dataplane"})', '{{version}}'],
        ),
      ],
    },
  ],
};
