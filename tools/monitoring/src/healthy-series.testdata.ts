/**
 * Series of a network at which nothing is wrong, 200 samples in promtool's notation, with what a healthy one has: a rolling update,
 * another leader, a rotation of keys, some lost packets. By no part of it may an alert fire.
 */

const UPDATE = 100;
const steady = (value: number): string => `${value}x200`;
/** At the update for as many minutes. */
const briefly = (usual: number, meanwhile: number, minutes: number): string =>
  `${usual}x${UPDATE - 1} ${meanwhile}x${minutes - 1} ${usual}x${200 - UPDATE - minutes}`;
/** A pod that the update replaces, and its successor, which needs two minutes to start. */
const replaced = `1x${UPDATE - 1} stale`;
const successor = `_x${UPDATE} 0x1 1x${200 - UPDATE}`;
/** Some more, all in one minute of the update. */
const burst = (count: number): string => `0x${UPDATE - 1} ${count}x${200 - UPDATE}`;

const AGENT = 'job="unbounded-node-dataplane"';
const PREFIX = 'unbounded_net_controller';
const CONTROLLER = 'job="unbounded-site-membership"';

const agents: Readonly<Record<string, string>> = {
  [`up{${AGENT},node="a",pod="agent-a"}`]: replaced,
  [`up{${AGENT},node="a",pod="agent-a2"}`]: successor,
  [`up{${AGENT},node="b",pod="agent-b"}`]: steady(1),
  [`process_start_time_seconds{${AGENT},node="a",pod="agent-a"}`]: `5x${UPDATE - 1} stale`,
  [`process_start_time_seconds{${AGENT},node="a",pod="agent-a2"}`]: `_x${UPDATE} 6000x100`,
  [`process_start_time_seconds{${CONTROLLER},node="a"}`]: burst(6000),
  'unbounded_agent_section_passes_total{node="a",section="connectivity",result="success"}': '0+6x200',
  'unbounded_agent_section_passes_total{node="a",section="connectivity",result="failure"}': burst(5),
  'unbounded_agent_section_last_success_timestamp_seconds{node="a",section="connectivity"}': '0+60x200',
  'unbounded_state_files_unwritten{node="a"}': briefly(0, 1, 3),
  'unbounded_bpf_map_entries{node="a",map="endpoints_v4"}': steady(100),
  'unbounded_bpf_map_max_entries{node="a",map="endpoints_v4"}': steady(16_384),
  'unbounded_keeper_processes{node="a",kind="wireguard",state="stopped"}': briefly(0, 1, 3),
  'unbounded_status_pushes_sent_total{node="a",result="failed"}': burst(8),
};

const connectivity: Readonly<Record<string, string>> = {
  // A gateway of many, and a node of few: while agents are replaced one after the other, one peer or another is away.
  'unbounded_health_peers{node="a",family="4",state="Healthy"}': briefly(20, 19, 60),
  'unbounded_health_peers{node="a",family="4",state="Unhealthy"}': briefly(0, 1, 60),
  'unbounded_health_peers{node="b",family="4",state="Healthy"}': briefly(2, 1, 3),
  'unbounded_health_peers{node="b",family="4",state="Unhealthy"}': briefly(0, 1, 3),
  'unbounded_health_echo_gateways{node="a",family="4",returned="true"}': steady(2),
  'unbounded_health_echo_gateways{node="a",family="4",returned="false"}': briefly(0, 1, 1),
  [`${PREFIX}_gateway_pool_reachable_sites{pool="p"}`]: steady(3),
  [`${PREFIX}_gateway_pool_ineligible_nodes{pool="p"}`]: briefly(0, 1, 5),
  'unbounded_forwarding_blocked{node="a",family="4",table="ip filter",chain="FORWARD"}': steady(0),
  'unbounded_host_firewall_chains{node="a",overlay="refused"}': steady(0),
  'unbounded_overlay_dropped_packets_total{node="a",reason="no_member"}': '0+6x200',
  'unbounded_firewall_dropped_packets_total{node="a",reason="overlay_leak"}': burst(500),
  'unbounded_wireguard_key_rotating{node="a"}': briefly(0, 1, 20),
  'unbounded_wireguard_peer_paths{node="a",path="relay"}': briefly(0, 1, 3),
};

const controlPlane: Readonly<Record<string, string>> = {
  [`up{${CONTROLLER},pod="m1"}`]: briefly(1, 0, 2),
  [`up{${CONTROLLER},pod="m2"}`]: steady(1),
  'up{job="unbounded-relay",pod="r"}': briefly(1, 0, 2),
  'up{job="unbounded-tailnet",node="a"}': briefly(1, 0, 2),
  [`leader_election_master_status{${CONTROLLER},name="site-membership",pod="m1"}`]: `1x${UPDATE} 0x100`,
  [`leader_election_master_status{${CONTROLLER},name="site-membership",pod="m2"}`]: `0x${UPDATE + 2} 1x98`,
  'leader_election_master_status{job="other",name="other"}': steady(0),
  'leader_election_master_status{job="unbounded-static-egress",name="static-egress"}': steady(1),
  [`rest_client_requests_total{${CONTROLLER},code="200"}`]: '0+60x200',
  [`rest_client_requests_total{${CONTROLLER},code="503"}`]: burst(60),
  [`${PREFIX}_refused_writes_total{${CONTROLLER},kind="Node"}`]: burst(3),
  'unbounded_status_redis_up{pod="s"}': briefly(1, 0, 2),
};

const addresses: Readonly<Record<string, string>> = {
  [`${PREFIX}_pod_cidr_waiting_nodes{site="s"}`]: briefly(0, 1, 2),
  [`${PREFIX}_pod_cidr_conflicts`]: steady(0),
  [`${PREFIX}_l2_locator_waiting_nodes{site="s"}`]: steady(0),
  [`${PREFIX}_nodes_without_site`]: briefly(0, 1, 5),
  [`${PREFIX}_site_node_cidr_overlaps{site="s"}`]: steady(0),
  [`${PREFIX}_node_problems{reason="InvalidWireGuardKey"}`]: steady(0),
};

const parts: Readonly<Record<string, string>> = {
  [`${PREFIX}_egress_addresses{state="owned"}`]: steady(4),
  [`${PREFIX}_egress_addresses{state="taking"}`]: briefly(0, 1, 2),
  [`${PREFIX}_egress_addresses{state="silent"}`]: briefly(0, 1, 3),
  [`${PREFIX}_egress_addresses{state="unowned"}`]: briefly(0, 1, 1),
  [`${PREFIX}_egress_problems{reason="NoCandidate"}`]: steady(0),
  'unbounded_egress_address_held{node="a",address="192.0.2.1"}': briefly(1, 0, 2),
  'unbounded_egress_ports_used_ratio{node="a",address="192.0.2.1"}': steady(0.5),
  'unbounded_relay_client_relays{node="a",state="disconnected"}': briefly(0, 1, 2),
  'unbounded_relay_dropped_frames_total{pod="r",reason="slow"}': burst(300),
  'unbounded_relay_refused_connections_total{pod="r",limit="address"}': burst(200),
  'unbounded_relay_allowed_keys_stale{pod="r"}': briefly(0, 1, 2),
  'unbounded_tailnet_devices{state="Running"}': steady(5),
  'unbounded_tailnet_devices{state="NeedsLogin"}': briefly(0, 1, 3),
  'unbounded_tailnet_api_calls_total{operation="createKey",result="Success"}': '0+1x200',
  'unbounded_tailnet_api_calls_total{operation="createKey",result="Unauthorized"}': burst(3),
};

export const HEALTHY: Readonly<Record<string, string>> = {
  ...agents,
  ...connectivity,
  ...controlPlane,
  ...addresses,
  ...parts,
};
