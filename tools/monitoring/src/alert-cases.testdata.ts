import type { Alert } from './alert.ts';
import { absent, counter, gauge, type Samples, standing } from './fault-course.testdata.ts';

/** For each alert the series by which it fires. */

export interface AlertCase {
  readonly alert: Alert['name'];
  /** Besides name and severity. */
  readonly labels: Readonly<Record<string, string>>;
  readonly series: Readonly<Record<string, Samples>>;
  /** Healthy series that are away with the fault: those that begin so. */
  readonly without?: string;
}

const PREFIX = 'unbounded_net_controller';
const EGRESS = `${PREFIX}_egress`;

const CONNECTIVITY: readonly AlertCase[] = [
  {
    alert: 'UnboundedGatewayDown',
    labels: { family: '4' },
    series: { 'unbounded_health_echo_gateways{node="a",family="4",returned="false"}': gauge(0, 1) },
  },
  {
    alert: 'UnboundedPeersUnhealthy',
    labels: { family: '4' },
    series: {
      'unbounded_health_peers{node="b",family="4",state="Unhealthy"}': gauge(0, 1),
      'unbounded_health_peers{node="b",family="4",state="Healthy"}': gauge(2, 1),
    },
  },
  {
    alert: 'UnboundedGatewayPoolUnreachable',
    labels: { pool: 'p' },
    series: { [`${PREFIX}_gateway_pool_reachable_sites{pool="p"}`]: gauge(3, 0) },
  },
  {
    alert: 'UnboundedGatewayNodesIneligible',
    labels: { pool: 'p' },
    series: { [`${PREFIX}_gateway_pool_ineligible_nodes{pool="p"}`]: gauge(0, 1) },
  },
  {
    alert: 'UnboundedForwardingBlocked',
    labels: { node: 'a', family: '4', table: 'ip filter', chain: 'FORWARD' },
    series: { 'unbounded_forwarding_blocked{node="a",family="4",table="ip filter",chain="FORWARD"}': gauge(0, 1) },
  },
  {
    alert: 'UnboundedHostFirewallRefuses',
    labels: { node: 'a' },
    series: { 'unbounded_host_firewall_chains{node="a",overlay="refused"}': gauge(0, 2) },
  },
  {
    alert: 'UnboundedPacketsDropped',
    labels: { node: 'a', reason: 'no_member' },
    series: { 'unbounded_overlay_dropped_packets_total{node="a",reason="no_member"}': counter(600) },
  },
  {
    alert: 'UnboundedPacketsDropped',
    labels: { node: 'a', reason: 'overlay_leak' },
    series: { 'unbounded_firewall_dropped_packets_total{node="a",reason="overlay_leak"}': counter(600) },
  },
  {
    alert: 'UnboundedWireGuardRotationStuck',
    labels: { node: 'a' },
    series: { 'unbounded_wireguard_key_rotating{node="a"}': gauge(0, 1) },
  },
  {
    alert: 'UnboundedRelayedPaths',
    labels: { node: 'a' },
    series: { 'unbounded_wireguard_peer_paths{node="a",path="relay"}': gauge(0, 3) },
  },
];

const AGENTS: readonly AlertCase[] = [
  {
    alert: 'UnboundedAgentDown',
    labels: { job: 'unbounded-node-dataplane', node: 'b', pod: 'agent-b' },
    series: { 'up{job="unbounded-node-dataplane",node="b",pod="agent-b"}': gauge(1, 0) },
  },
  {
    alert: 'UnboundedAgentsAbsent',
    labels: { job: 'unbounded-node-dataplane' },
    without: 'up{job="unbounded-node-dataplane"',
    series: { 'up{job="unbounded-node-dataplane",node="b"}': absent },
  },
  {
    alert: 'UnboundedProgramRestarting',
    labels: { job: 'unbounded-site-membership', node: 'a' },
    series: {
      'process_start_time_seconds{job="unbounded-site-membership",node="a"}': counter(60),
    },
  },
  {
    alert: 'UnboundedSectionFailing',
    labels: { node: 'a', section: 'connectivity' },
    series: { 'unbounded_agent_section_passes_total{node="a",section="connectivity",result="failure"}': counter(2) },
  },
  {
    alert: 'UnboundedSectionStale',
    labels: { node: 'a', section: 'connectivity' },
    series: { 'unbounded_agent_section_last_success_timestamp_seconds{node="a",section="connectivity"}': standing },
  },
  {
    alert: 'UnboundedStateFilesUnwritten',
    labels: { node: 'a' },
    series: { 'unbounded_state_files_unwritten{node="a"}': gauge(0, 1) },
  },
  {
    alert: 'UnboundedMapNearlyFull',
    labels: { node: 'a', map: 'endpoints_v4' },
    series: { 'unbounded_bpf_map_entries{node="a",map="endpoints_v4"}': gauge(100, 14_000) },
  },
  {
    alert: 'UnboundedKeeperProcessStopped',
    labels: { node: 'a', kind: 'wireguard' },
    series: { 'unbounded_keeper_processes{node="a",kind="wireguard",state="stopped"}': gauge(0, 1) },
  },
];

const CONTROL_PLANE: readonly AlertCase[] = [
  {
    alert: 'UnboundedProgramDown',
    labels: { job: 'unbounded-relay' },
    series: { 'up{job="unbounded-relay",pod="r"}': gauge(1, 0) },
  },
  {
    alert: 'UnboundedLeaderMissing',
    labels: { job: 'unbounded-static-egress', name: 'static-egress' },
    series: { 'leader_election_master_status{job="unbounded-static-egress",name="static-egress"}': gauge(1, 0) },
  },
  {
    alert: 'UnboundedAPIErrors',
    labels: { job: 'unbounded-site-membership' },
    series: { 'rest_client_requests_total{job="unbounded-site-membership",code="403"}': counter(30) },
  },
  {
    alert: 'UnboundedWritesRefused',
    labels: { job: 'unbounded-site-membership', kind: 'Node' },
    series: { [`${PREFIX}_refused_writes_total{job="unbounded-site-membership",kind="Node"}`]: counter(1) },
  },
  {
    alert: 'UnboundedRedisDown',
    labels: { pod: 's' },
    series: { 'unbounded_status_redis_up{pod="s"}': gauge(1, 0) },
  },
  {
    alert: 'UnboundedStatusReportsFailing',
    labels: {},
    series: { 'unbounded_status_pushes_sent_total{node="a",result="failed"}': counter(4) },
  },
];

const ADDRESSES: readonly AlertCase[] = [
  {
    alert: 'UnboundedPodCIDRsExhausted',
    labels: { site: 's' },
    series: { [`${PREFIX}_pod_cidr_waiting_nodes{site="s"}`]: gauge(0, 1) },
  },
  {
    alert: 'UnboundedPodCIDRConflict',
    labels: {},
    series: { [`${PREFIX}_pod_cidr_conflicts`]: gauge(0, 1) },
  },
  {
    alert: 'UnboundedLocatorsExhausted',
    labels: { site: 's' },
    series: { [`${PREFIX}_l2_locator_waiting_nodes{site="s"}`]: gauge(0, 1) },
  },
  {
    alert: 'UnboundedNodesWithoutSite',
    labels: {},
    series: { [`${PREFIX}_nodes_without_site`]: gauge(0, 1) },
  },
  {
    alert: 'UnboundedSiteNodeCIDROverlap',
    labels: { site: 's' },
    series: { [`${PREFIX}_site_node_cidr_overlaps{site="s"}`]: gauge(0, 1) },
  },
  {
    alert: 'UnboundedNodeFactsRejected',
    labels: { reason: 'InvalidWireGuardKey' },
    series: { [`${PREFIX}_node_problems{reason="InvalidWireGuardKey"}`]: gauge(0, 1) },
  },
];

const PARTS: readonly AlertCase[] = [
  {
    alert: 'UnboundedEgressAddressUnowned',
    labels: {},
    series: { [`${EGRESS}_addresses{state="unowned"}`]: gauge(0, 1) },
  },
  {
    alert: 'UnboundedEgressAddressSilent',
    labels: {},
    series: { [`${EGRESS}_addresses{state="silent"}`]: gauge(0, 1) },
  },
  {
    alert: 'UnboundedEgressAddressNotHeld',
    labels: { node: 'a', address: '192.0.2.1' },
    series: { 'unbounded_egress_address_held{node="a",address="192.0.2.1"}': gauge(1, 0) },
  },
  {
    alert: 'UnboundedEgressPortsNearlyExhausted',
    labels: { node: 'a', address: '192.0.2.1' },
    series: { 'unbounded_egress_ports_used_ratio{node="a",address="192.0.2.1"}': gauge(0.5, 0.9) },
  },
  {
    alert: 'UnboundedEgressProblems',
    labels: { reason: 'NoCandidate' },
    series: { [`${EGRESS}_problems{reason="NoCandidate"}`]: gauge(0, 1) },
  },
  {
    alert: 'UnboundedRelayDisconnected',
    labels: { node: 'a' },
    series: { 'unbounded_relay_client_relays{node="a",state="disconnected"}': gauge(0, 1) },
  },
  {
    alert: 'UnboundedRelayDroppingFrames',
    labels: { reason: 'slow' },
    series: { 'unbounded_relay_dropped_frames_total{pod="r",reason="slow"}': counter(600) },
  },
  {
    alert: 'UnboundedRelayRefusingConnections',
    labels: { limit: 'address' },
    series: { 'unbounded_relay_refused_connections_total{pod="r",limit="address"}': counter(10) },
  },
  {
    alert: 'UnboundedRelayKeysStale',
    labels: { pod: 'r' },
    series: { 'unbounded_relay_allowed_keys_stale{pod="r"}': gauge(0, 1) },
  },
  {
    alert: 'UnboundedTailnetDevicesNotRunning',
    labels: {},
    series: { 'unbounded_tailnet_devices{state="NeedsLogin"}': gauge(0, 1) },
  },
  {
    alert: 'UnboundedTailnetAPIErrors',
    labels: { operation: 'createKey', result: 'Unauthorized' },
    series: { 'unbounded_tailnet_api_calls_total{operation="createKey",result="Unauthorized"}': counter(3) },
  },
];

export const ALERT_CASES: readonly AlertCase[] = [...CONNECTIVITY, ...AGENTS, ...CONTROL_PLANE, ...ADDRESSES, ...PARTS];
