import type { ConnectivityStatus, PeerHealthStatus, PeerStatus } from './report/connectivity-status.ts';
import type { NodeReport } from './report/node-report.ts';

/** Reports as agents send them. */

export const peerOf = (health: Partial<PeerHealthStatus> = {}, over: Partial<PeerStatus> = {}): PeerStatus => ({
  protocol: 'WireGuard',
  health: { ipv4: { state: 'Healthy', rttMs: 1, ...health } },
  wireGuard: {},
  ...over,
});

export const connectivityOf = ({
  peers = [],
  ...over
}: Omit<Partial<ConnectivityStatus>, 'peers'> & {
  readonly peers?: readonly string[] | ConnectivityStatus['peers'];
} = {}): ConnectivityStatus => ({
  site: 's1',
  role: 'worker',
  dataplane: 'ebpf',
  groups: {},
  ...over,
  peers: Array.isArray(peers)
    ? Object.fromEntries((peers as readonly string[]).map((node) => [node, peerOf()]))
    : (peers as ConnectivityStatus['peers']),
});

export const reportOf = (over: Partial<NodeReport> = {}): NodeReport => ({
  agentVersion: '0.1.0',
  isComplete: true,
  problems: [],
  drops: {},
  ...over,
});
