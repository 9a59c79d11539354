import type { ConnectivityStatus, NodeReport, PeerStatus } from '@unbounded/status';

/** What the nodes of a lab of two sites report: `tools/lab up`, GET /v1alpha1/nodes/NAME of each. */

export const SITES = [
  { name: 's1', workers: ['s1-w1', 's1-w2'], gateways: ['s1-g1', 's1-g2'] },
  { name: 's2', workers: ['s2-w1', 's2-w2'], gateways: ['s2-g1', 's2-g2'] },
] as const;

type Site = (typeof SITES)[number];

const vxlan = (): PeerStatus => ({
  protocol: 'VXLAN',
  health: { ipv4: { state: 'Healthy', rttMs: 0.53, lossRatio: 0 } },
  wireGuard: {},
});

const wireGuard = (device: string): PeerStatus => ({
  protocol: 'WireGuard',
  health: { ipv4: { state: 'Healthy', rttMs: 1.1, lossRatio: 0.031, forwards: true } },
  wireGuard: {
    [device]: {
      endpoint: '203.0.113.121:51821',
      latestHandshakeTime: '2026-01-01T00:00:00.000Z',
      ...{ rxBytes: 73_375_220, txBytes: 73_298_740 },
    },
  },
});

const groupTo = (site: string, gateways: readonly string[]): ConnectivityStatus['groups'] => ({
  [`site ${site} IPv4`]: {
    ...{ site, family: 'IPv4' },
    members: Object.fromEntries(gateways.map((name) => [name, { tier: 0, isActive: true, reachesSite: true }])),
  },
});

const byName = (names: readonly string[], peer: (at: number) => PeerStatus): Record<string, PeerStatus> =>
  Object.fromEntries(names.map((name, at) => [name, peer(at)]));

const reportOf = (node: string, { name: site, workers, gateways }: Site, other: Site): NodeReport => {
  const isGateway = (gateways as readonly string[]).includes(node);
  const near = [...workers, ...gateways].filter((name) => name !== node);
  return {
    ...{ agentVersion: '0.1.0', isComplete: true, problems: [], drops: { tunnel_icmp_error: 1 } },
    connectivity: {
      ...{ site, role: isGateway ? 'gateway' : 'worker', dataplane: 'ebpf' },
      peers: {
        ...byName(near, vxlan),
        ...(isGateway ? byName(other.gateways, (at) => wireGuard(`wg5182${at + 1}`)) : {}),
      },
      groups: groupTo(other.name, isGateway ? other.gateways : gateways),
    },
  };
};

export const reportsOf = (): Map<string, NodeReport> =>
  new Map(
    SITES.flatMap((site, at) =>
      [...site.workers, ...site.gateways].map((node) => [node, reportOf(node, site, SITES[1 - at]!)] as const),
    ),
  );

/** The same node once a gateway of its site answers no more. */
export const withoutPeer = (report: NodeReport, peer: string): NodeReport => {
  const { connectivity } = report;
  if (!connectivity?.peers[peer]) return report;
  const groups = Object.entries(connectivity.groups).map(([name, group]) => [
    name,
    peer in group.members ? { ...group, members: { ...group.members, [peer]: { tier: 0, isActive: false } } } : group,
  ]);
  const health = { ipv4: { state: 'Unhealthy' as const, lossRatio: 1 } };
  const peers = { ...connectivity.peers, [peer]: { ...connectivity.peers[peer], health } };
  return {
    ...report,
    connectivity: { ...connectivity, peers, groups: Object.fromEntries(groups) as typeof connectivity.groups },
  };
};
