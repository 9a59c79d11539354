import type { AlertGroup } from '../alert.ts';

/** A share of a node's peers. A rolling update of agents takes fewer of them away at a time, or for a shorter time. */
const MANY_PEERS = 0.2;

/** Traffic between nodes and sites. */
export const connectivityAlerts: AlertGroup = {
  name: 'unbounded-connectivity',
  alerts: [
    {
      name: 'UnboundedGatewayDown',
      expr: 'count by (family) (max by (node, family) (unbounded_health_echo_gateways{returned="false"}) > 0)',
      for: '2m',
      severity: 'critical',
      summary: 'A gateway does not forward IPv{{ $labels.family }}, as {{ $value | humanize }} nodes see it.',
      description:
        'Echoes that {{ $value | humanize }} nodes send through a gateway do not come back: the gateway is dead, cut off, or drops what it should forward. Traffic takes other gateways of the pool, if there are any.',
    },
    {
      name: 'UnboundedPeersUnhealthy',
      expr: `count by (family) (sum by (node, family) (unbounded_health_peers{state="Unhealthy"}) / sum by (node, family) (unbounded_health_peers) > ${MANY_PEERS})`,
      for: '5m',
      severity: 'warning',
      summary:
        'A fifth of the peers of {{ $value | humanize }} nodes, or more, do not answer probes over IPv{{ $labels.family }}.',
      description:
        '{{ $value | humanize }} nodes get no reply from more than a fifth of the peers that they probe. Many nodes: a gateway or a site is away. One node: that node is cut off.',
    },
    {
      name: 'UnboundedGatewayPoolUnreachable',
      expr: 'max by (pool) (unbounded_net_controller_gateway_pool_reachable_sites) == 0',
      for: '5m',
      severity: 'critical',
      summary: 'No gateway of the pool {{ $labels.pool }} has a route to any site.',
      description: 'The GatewayPool {{ $labels.pool }} carries nothing: its status.reachableSites is empty.',
    },
    {
      name: 'UnboundedGatewayNodesIneligible',
      expr: 'max by (pool) (unbounded_net_controller_gateway_pool_ineligible_nodes) > 0',
      for: '15m',
      severity: 'warning',
      summary: '{{ $value | humanize }} nodes that the pool {{ $labels.pool }} selects cannot be its gateways.',
      description:
        'The conditions of the GatewayPool {{ $labels.pool }} name the nodes, and what each lacks: a key, an external address, or they are in another pool.',
    },
    {
      name: 'UnboundedForwardingBlocked',
      expr: 'max by (node, family, table, chain) (unbounded_forwarding_blocked) == 1',
      for: '2m',
      severity: 'critical',
      summary:
        'A firewall on {{ $labels.node }} drops packets of the overlay (chain {{ $labels.chain }} of {{ $labels.table }}).',
      description:
        'Echoes over IPv{{ $labels.family }} were traced to the chain {{ $labels.chain }} of the table {{ $labels.table }} on {{ $labels.node }}, which drops what the node should forward.',
    },
    {
      name: 'UnboundedHostFirewallRefuses',
      expr: 'max by (node) (unbounded_host_firewall_chains{overlay="refused"}) > 0',
      for: '15m',
      severity: 'warning',
      summary: 'A host firewall on {{ $labels.node }} does not let the overlay pass.',
      description:
        '{{ $value | humanize }} chains of host firewalls on {{ $labels.node }} refuse what nobody has accepted, and nobody has accepted packets of the overlay there.',
    },
    {
      name: 'UnboundedPacketsDropped',
      expr: [
        'sum by (node, reason) (rate(unbounded_overlay_dropped_packets_total[5m])) > 1',
        'sum by (node, reason) (rate(unbounded_firewall_dropped_packets_total[5m])) > 1',
      ].join(' or '),
      for: '15m',
      severity: 'warning',
      summary: '{{ $labels.node }} drops packets all the time: {{ $labels.reason }}.',
      description:
        '{{ $labels.node }} has dropped {{ $value | humanize }} packets a second for 15 minutes, reason {{ $labels.reason }}: a wrong Site, a missing route, or somebody who tries.',
    },
    {
      name: 'UnboundedWireGuardRotationStuck',
      expr: 'max by (node) (unbounded_wireguard_key_rotating) == 1',
      for: '1h',
      severity: 'warning',
      summary: 'The rotation of the WireGuard key of {{ $labels.node }} does not end.',
      description:
        'For an hour {{ $labels.node }} has waited for peers to take its new key. Traffic goes on with the former one; the condition of the Node names the peers.',
    },
    {
      name: 'UnboundedRelayedPaths',
      expr: 'sum by (node) (unbounded_wireguard_peer_paths{path="relay"}) > 0',
      for: '10m',
      severity: 'info',
      summary: '{{ $labels.node }} reaches {{ $value | humanize }} peers by a relay only.',
      description:
        'UDP between {{ $labels.node }} and {{ $value | humanize }} peers does not get through, so that WireGuard goes by TCP through a relay: slower, and it costs the relay.',
    },
  ],
};
