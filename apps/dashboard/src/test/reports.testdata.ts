import type { ConnectivityStatus, NodeReport, PeerStatus } from '@unbounded/status';

/** What nodes report: as in a lab of two sites (`tools/lab up`, GET /v1alpha1/nodes/NAME of each), for as many sites as are asked for. */

export interface ReplayedSite {
  readonly name: string;
  readonly workers: readonly string[];
  readonly gateways: readonly string[];
}

const named = (count: number, prefix: string): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index + 1}`);

/** Sites s1, s2, … with nodes s1-w1, …, and two gateways s1-g1 and s1-g2 in each. */
export const sitesOf = (count: number, workers: number): ReplayedSite[] =>
  named(count, 's').map((name) => ({ name, workers: named(workers, `${name}-w`), gateways: named(2, `${name}-g`) }));

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

interface OfSite {
  readonly site: string;
  readonly near: ConnectivityStatus['peers'];
  readonly far: ConnectivityStatus['peers'];
  readonly groups: Readonly<Record<'worker' | 'gateway', ConnectivityStatus['groups']>>;
}

/** What all nodes of a site share. */
const ofSite = ({ name: site, workers, gateways }: ReplayedSite, others: readonly ReplayedSite[]): OfSite => ({
  site,
  near: byName([...workers, ...gateways], vxlan),
  far: byName(
    others.flatMap((other) => other.gateways),
    (at) => wireGuard(`wg${51821 + at}`),
  ),
  groups: {
    worker: Object.assign({}, ...others.map((other) => groupTo(other.name, gateways))),
    gateway: Object.assign({}, ...others.map((other) => groupTo(other.name, other.gateways))),
  },
});

const reportOf = (node: string, role: 'worker' | 'gateway', { site, near, far, groups }: OfSite): NodeReport => {
  const { [node]: _, ...peers } = near;
  return {
    ...{ agentVersion: '0.1.0', isComplete: true, problems: [], drops: { tunnel_icmp_error: 1 } },
    connectivity: {
      ...{ site, role, dataplane: 'ebpf', groups: groups[role] },
      peers: role === 'gateway' ? { ...peers, ...far } : peers,
    },
  };
};

/** Of the lab. */
export const SITES = sitesOf(2, 2);

export const reportsOf = (sites: readonly ReplayedSite[] = SITES): Map<string, NodeReport> =>
  new Map(
    sites.flatMap((site) => {
      const { workers, gateways } = site;
      const shared = ofSite(
        site,
        sites.filter((other) => other !== site),
      );
      return [
        ...workers.map((node) => [node, reportOf(node, 'worker', shared)] as const),
        ...gateways.map((node) => [node, reportOf(node, 'gateway', shared)] as const),
      ];
    }),
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
