/** What an operator does about a metric: when, and what. Metrics without an entry are for context. */
export interface MetricAction {
  /** The state that asks for it, in PromQL. */
  readonly when: string;
  readonly action: string;
}

const rising = (name: string, window = '10m'): string => `increase(${name}[${window}]) > 0`;

export const METRIC_ACTIONS: Readonly<Record<string, MetricAction>> = {
  unbounded_net_controller_pod_cidr_waiting_nodes: {
    when: 'unbounded_net_controller_pod_cidr_waiting_nodes > 0',
    action: 'Add a block to the assignment of the Site: new nodes have no pod network.',
  },
  unbounded_net_controller_pod_cidr_conflicts: {
    when: 'unbounded_net_controller_pod_cidr_conflicts > 0',
    action:
      'Two nodes have the same pod addresses: the Events of the Nodes name both; remove one Node and let it join anew.',
  },
  unbounded_net_controller_l2_locator_waiting_nodes: {
    when: 'unbounded_net_controller_l2_locator_waiting_nodes > 0',
    action: 'Give the Mesh a larger prefix for locators: LANs do not reach these nodes.',
  },
  unbounded_net_controller_gateway_pool_ineligible_nodes: {
    when: 'unbounded_net_controller_gateway_pool_ineligible_nodes > 0',
    action: 'The conditions of the GatewayPool name the nodes, and what each lacks.',
  },
  unbounded_net_controller_gateway_pool_reachable_sites: {
    when: 'unbounded_net_controller_gateway_pool_reachable_sites == 0',
    action: 'The pool carries nothing: look at its peerings, and at the health of its gateways.',
  },
  unbounded_net_controller_damped_nodes: {
    when: 'unbounded_net_controller_damped_nodes > 0',
    action: 'Somebody changes facts of these nodes again and again: see their Events; it may be a compromised node.',
  },
  unbounded_net_controller_site_node_cidr_overlaps: {
    when: 'unbounded_net_controller_site_node_cidr_overlaps > 0',
    action: 'Two Sites claim the same node addresses: correct spec.nodeCidrs of the younger one.',
  },
  unbounded_net_controller_nodes_without_site: {
    when: 'unbounded_net_controller_nodes_without_site > 0',
    action: 'These nodes are in no Site: add their block to spec.nodeCidrs of one.',
  },
  unbounded_net_controller_node_problems: {
    when: 'unbounded_net_controller_node_problems > 0',
    action: 'The condition UnboundedNodeAccepted of the Nodes names the rejected fact and what would be valid.',
  },
  unbounded_net_controller_egress_addresses: {
    when: 'unbounded_net_controller_egress_addresses{state=~"unowned|silent"} > 0',
    action:
      'Pods with such an address reach nothing: the condition of the rule says which node to mend, or to give up.',
  },
  unbounded_net_controller_egress_problems: {
    when: 'unbounded_net_controller_egress_problems > 0',
    action: 'kubectl get staticegressips,egressippools -A shows which; the condition names field, value and remedy.',
  },
  unbounded_net_controller_egress_refused_slices: {
    when: 'unbounded_net_controller_egress_refused_slices > 0',
    action: 'Events WriteRefused say why the API server refuses them: policies, quotas or an older CRD.',
  },
  unbounded_net_controller_refused_writes_total: {
    when: rising('unbounded_net_controller_refused_writes_total'),
    action: 'Rights or CRDs do not fit the version of the program: apply the chart of this version.',
  },
  unbounded_events_dropped_total: {
    when: rising('unbounded_events_dropped_total'),
    action: 'Events are missing: read the conditions, which are complete.',
  },
  unbounded_l2_networks: {
    when: 'unbounded_l2_networks{ready="False"} > 0',
    action: 'kubectl get networks shows which; its condition Ready names the field.',
  },
  unbounded_agent_section_passes_total: {
    when: 'increase(unbounded_agent_section_passes_total{result="failure"}[10m]) > 3',
    action: 'A section of the node’s agent cannot do its work: the Node’s conditions and the agent’s log say what.',
  },
  unbounded_agent_section_last_success_timestamp_seconds: {
    when: 'time() - unbounded_agent_section_last_success_timestamp_seconds > 300',
    action: 'As above; forwarding goes on as it was planned last.',
  },
  unbounded_agent_restorations_total: {
    when: 'increase(unbounded_agent_restorations_total[10m]) > 10',
    action:
      'Another program of the node removes our routes or rules: find it (systemd-networkd: ManageForeignRoutes=no).',
  },
  unbounded_pod_frames_dropped_total: {
    when: rising('unbounded_pod_frames_dropped_total'),
    action: 'A pod sends with addresses that are not its own: the Event of the Pod says which.',
  },
  unbounded_overlay_dropped_packets_total: {
    when: 'rate(unbounded_overlay_dropped_packets_total[5m]) > 1',
    action:
      'By reason: docs/security.md says what each keeps out. Steady drops of a source are a wrong Site or an attempt.',
  },
  unbounded_firewall_dropped_packets_total: {
    when: 'rate(unbounded_firewall_dropped_packets_total[5m]) > 1',
    action: 'By reason, as above.',
  },
  unbounded_l2_received_frames_dropped_total: {
    when: 'rate(unbounded_l2_received_frames_dropped_total[5m]) > 1',
    action: 'By reason: frames in another’s name come from a node that is not what it should be.',
  },
  unbounded_forwarding_blocked: {
    when: 'unbounded_forwarding_blocked == 1',
    action:
      'A firewall of the host drops what it should forward: table and chain are in the labels (docs/operations.md).',
  },
  unbounded_host_firewall_chains: {
    when: 'unbounded_host_firewall_chains{overlay="refused"} > 0',
    action: 'Let the agent accept the overlay there (hostFirewall: Accept), or add the rules that the condition names.',
  },
  unbounded_health_peers: {
    when: 'unbounded_health_peers{state="Unhealthy"} > 0',
    action: 'These peers do not answer: the dashboard says which sites are affected, and which path replaces them.',
  },
  unbounded_health_thread_scheduling: {
    when: 'unbounded_health_thread_scheduling{policy="shared"} == 1',
    action: 'A busy node may be taken for a dead one: give the container CAP_SYS_NICE or a higher CPU weight.',
  },
  unbounded_health_probes_rejected_total: {
    when: 'rate(unbounded_health_probes_rejected_total[5m]) > 1',
    action: 'Probes that are not genuine, or of a version that is too old: by reason.',
  },
  unbounded_wireguard_key_rotating: {
    when: 'min_over_time(unbounded_wireguard_key_rotating[1h]) == 1',
    action: 'A rotation does not end: the condition of the Node says which peers have not taken the new key.',
  },
  unbounded_wireguard_peer_paths: {
    when: 'unbounded_wireguard_peer_paths{path="relay"} > 0',
    action: 'UDP does not get through to these peers: open the port, or accept the relay’s latency (docs/relay.md).',
  },
  unbounded_relay_client_relays: {
    when: 'unbounded_relay_client_relays{state="disconnected"} > 0',
    action: 'The node does not reach its relay by TCP: check name, port and certificate (docs/relay.md).',
  },
  unbounded_relay_client_dropped_total: {
    when: 'rate(unbounded_relay_client_dropped_total[5m]) > 1',
    action: 'slowRelay: the TCP path is slower than the traffic; add replicas of the relay nearer to the sites.',
  },
  unbounded_egress_ports_used_ratio: {
    when: 'unbounded_egress_ports_used_ratio > 0.8',
    action: 'Give the rule another address: new connections to that destination will soon fail.',
  },
  unbounded_agent_kernel_writes_total: {
    when: 'rate(unbounded_agent_kernel_writes_total[10m]) > 10',
    action:
      'Without changes in the cluster a section writes nothing: another program of the node undoes what it writes.',
  },
  unbounded_bpf_map_entries: {
    when: 'unbounded_bpf_map_entries / on (map, instance) unbounded_bpf_map_max_entries > 0.8',
    action:
      'Packets for what does not fit are dropped: fewer blocks by site (larger podCIDR blocks), or fewer Networks at this node.',
  },
  unbounded_wireguard_peers: {
    when: 'unbounded_wireguard_peers{handshake!="recent"} > 0',
    action:
      'For longer than some minutes: UDP does not get through to these peers, or they are down; the Node’s condition names them.',
  },
  unbounded_keeper_processes: {
    when: 'unbounded_keeper_processes{state="stopped"} > 0',
    action: 'A user-space tunnel or the relay’s proxies do not run: the log of node-keeper has the reason.',
  },
  unbounded_keeper_process_starts_total: {
    when: 'increase(unbounded_keeper_process_starts_total[10m]) > 3',
    action: 'A process ends again and again: the log of node-keeper has its last words; memory may be short.',
  },
  unbounded_state_files_unwritten: {
    when: 'unbounded_state_files_unwritten > 0',
    action: 'The node’s disk is full or read-only: a restart of the agent would begin with an older state.',
  },
  unbounded_status_pushes_sent_total: {
    when: 'increase(unbounded_status_pushes_sent_total{result="failed"}[10m]) > 6',
    action: 'The node does not reach the aggregator; forwarding goes on. Check the Service and the token’s audience.',
  },
  unbounded_relay_dropped_frames_total: {
    when: 'rate(unbounded_relay_dropped_frames_total[5m]) > 1',
    action: 'By reason: a slow client is its node’s network; a full relay needs another replica.',
  },
  unbounded_relay_refused_connections_total: {
    when: 'increase(unbounded_relay_refused_connections_total[10m]) > 10',
    action: 'By limit: strangers, or more nodes than the limits allow for.',
  },
  unbounded_relay_allowed_keys_stale: {
    when: 'unbounded_relay_allowed_keys_stale == 1',
    action: 'New nodes are refused: make the list readable again; the log names the error.',
  },
  unbounded_status_redis_up: {
    when: 'unbounded_status_redis_up == 0',
    action: 'Each replica shows its own nodes only: mend Redis; the view is complete again without a restart.',
  },
  unbounded_status_rejections_total: {
    when: 'increase(unbounded_status_rejections_total[10m]) > 10',
    action: 'By reason: tokens of another audience, or a client that asks too often.',
  },
  unbounded_tailnet_pending_deletions: {
    when: 'unbounded_tailnet_pending_deletions > 0',
    action:
      'For longer than some minutes: the condition Registered of the devices says what the control server answers.',
  },
  unbounded_tailnet_devices: {
    when: 'unbounded_tailnet_devices{state=~"NeedsLogin|Unknown"} > 0',
    action: 'For longer than a minute: kubectl describe tailnetdevice (docs/tailnet.md).',
  },
  unbounded_tailnet_api_calls_total: {
    when: 'increase(unbounded_tailnet_api_calls_total{result!="Success"}[10m]) > 3',
    action: 'The condition TailnetReady of the Mesh says whether credentials, rights or the server are the cause.',
  },
  unbounded_tailnet_agent_process_restarts_total: {
    when: 'increase(unbounded_tailnet_agent_process_restarts_total[10m]) > 3',
    action: 'A device’s process dies again and again: the keeper’s log has its last words; memory may be short.',
  },
  unbounded_tailnet_agent_pending_removals: {
    when: 'unbounded_tailnet_agent_pending_removals > 0',
    action: 'For longer than a minute: the node’s keeper of devices does not run, or the disk cannot be written.',
  },
  workqueue_depth: {
    when: 'workqueue_depth > 100',
    action:
      'Work comes faster than it is done: see workqueue_work_duration_seconds, and whether the API server is slow.',
  },
  rest_client_requests_total: {
    when: 'rate(rest_client_requests_total{code=~"<error>|403|5.."}[5m]) > 0.1',
    action: '403: the chart of another version; else the way to the API server.',
  },
};
