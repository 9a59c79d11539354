import type { AlertGroup } from '../alert.ts';
import { AGENT_JOB, OUR_JOBS, TAILNET_AGENT_JOB } from '../jobs.ts';

/** Agents of nodes: that they run, and that they do their work. */
export const agentAlerts: AlertGroup = {
  name: 'unbounded-agents',
  alerts: [
    {
      name: 'UnboundedAgentDown',
      expr: `up{job=~"${AGENT_JOB}|${TAILNET_AGENT_JOB}"} == 0`,
      for: '5m',
      severity: 'warning',
      summary: 'The agent {{ $labels.job }} of node {{ $labels.node }} does not answer.',
      description:
        'Prometheus has not reached the agent on {{ $labels.node }} for 5 minutes. The node forwards as it was planned last, but learns of no change; if the node is dead, its pods and, on a gateway, its paths are away.',
    },
    {
      name: 'UnboundedAgentsAbsent',
      expr: `absent(up{job="${AGENT_JOB}"})`,
      for: '10m',
      severity: 'critical',
      summary: 'Prometheus knows of no agent of any node.',
      description:
        'There is no target with the job {{ $labels.job }}: the DaemonSet has no pods, or the PodMonitor does not select them. Until there is one, alerts about nodes cannot fire.',
    },
    {
      name: 'UnboundedProgramRestarting',
      expr: `sum by (job, node) (changes(process_start_time_seconds{${OUR_JOBS}}[1h])) > 3`,
      for: '5m',
      severity: 'warning',
      summary: '{{ $labels.job }} on {{ $labels.node }} restarts again and again.',
      description:
        '{{ $labels.job }} on {{ $labels.node }} restarted {{ $value | humanize }} times within an hour, in the same pod: a crash, too little memory, or a liveness probe that fails.',
    },
    {
      name: 'UnboundedSectionFailing',
      expr: 'sum by (node, section) (increase(unbounded_agent_section_passes_total{result="failure"}[5m])) > 3',
      for: '10m',
      severity: 'warning',
      summary: 'The section {{ $labels.section }} of the agent on {{ $labels.node }} fails.',
      description:
        '{{ $value | humanize }} passes of {{ $labels.section }} on {{ $labels.node }} failed within 5 minutes. What it set up before stays; other sections go on.',
    },
    {
      name: 'UnboundedSectionStale',
      expr: 'time() - max by (node, section) (unbounded_agent_section_last_success_timestamp_seconds) > 300',
      for: '5m',
      severity: 'warning',
      summary:
        'The section {{ $labels.section }} of the agent on {{ $labels.node }} has had no successful pass for long.',
      description:
        'The last successful pass of {{ $labels.section }} on {{ $labels.node }} was {{ $value | humanizeDuration }} ago. Forwarding goes on as it was planned then; changes are not applied.',
    },
    {
      name: 'UnboundedStateFilesUnwritten',
      expr: 'max by (node) (unbounded_state_files_unwritten) > 0',
      for: '10m',
      severity: 'warning',
      summary: 'The agent on {{ $labels.node }} cannot write its state files.',
      description:
        '{{ $value | humanize }} state files of {{ $labels.node }} are newer in memory than on the disk, which is full, read-only or broken. After a restart the agent would begin with an older state.',
    },
    {
      name: 'UnboundedMapNearlyFull',
      expr: 'max by (node, map) (unbounded_bpf_map_entries) / max by (node, map) (unbounded_bpf_map_max_entries) > 0.8',
      for: '15m',
      severity: 'warning',
      summary: 'The eBPF map {{ $labels.map }} of {{ $labels.node }} is nearly full.',
      description:
        '{{ $value | humanizePercentage }} of the entries of {{ $labels.map }} on {{ $labels.node }} are in use. Packets for what does not fit are dropped.',
    },
    {
      name: 'UnboundedKeeperProcessStopped',
      expr: 'max by (node, kind) (unbounded_keeper_processes{state="stopped"}) > 0',
      for: '5m',
      severity: 'critical',
      summary: 'Processes of node-keeper on {{ $labels.node }} do not run: {{ $labels.kind }}.',
      description:
        '{{ $value | humanize }} processes of the kind {{ $labels.kind }} that node-keeper is to run on {{ $labels.node }} end again and again, or cannot be started. wireguard: the tunnels are down. relay: peers behind firewalls that block UDP are not reached.',
    },
  ],
};
