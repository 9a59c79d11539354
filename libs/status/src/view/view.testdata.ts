import { connectivityOf, peerOf, reportOf } from '../report.testdata.ts';
import type { ConnectivityStatus, PeerStatus } from '../report/connectivity-status.ts';
import type { NodeReport } from '../report/node-report.ts';
import type { ReceivedReport, ViewInputs } from './inputs.ts';

/** Two sites of two workers each, behind a pool of two gateways in a third site: each node probes what it would probe. */

const WORKERS = { s1: ['w11', 'w12'], s2: ['w21', 'w22'] } as const;
const GATEWAYS = ['g1', 'g2'] as const;
export const NOW = '2026-01-01T00:00:00.000Z';

type Site = keyof typeof WORKERS;
const other = (site: Site): Site => (site === 's1' ? 's2' : 's1');

const peersOf = (names: readonly string[]): Record<string, PeerStatus> =>
  Object.fromEntries(names.map((name) => [name, peerOf()]));

const workerStatus = (site: Site, node: string): ConnectivityStatus =>
  connectivityOf({
    site,
    peers: peersOf([...WORKERS[site].filter((name) => name !== node), ...GATEWAYS]),
    groups: {
      [`site/${other(site)}/4`]: {
        site: other(site),
        family: 'IPv4',
        members: Object.fromEntries(GATEWAYS.map((name) => [name, { tier: 0, isActive: true }])),
      },
    },
  });

const gatewayStatus = (node: string): ConnectivityStatus =>
  connectivityOf({
    site: 'edge',
    role: 'gateway',
    peers: peersOf([...WORKERS.s1, ...WORKERS.s2, ...GATEWAYS.filter((name) => name !== node)]),
  });

export const received = (report: NodeReport, ageMs = 1000): ReceivedReport => ({ report, ageMs, time: NOW });

/** All is well. */
export const clusterInputs = (): ViewInputs & { readonly reports: Map<string, ReceivedReport> } => {
  const workers = (['s1', 's2'] as const).flatMap((site) => WORKERS[site].map((name) => ({ name, site })));
  const gateways = GATEWAYS.map((name) => ({ name, site: 'edge' }));
  return {
    sites: ['s1', 's2', 'edge'].map((name) => ({ name })),
    pools: [{ name: 'p1', gateways: [...GATEWAYS], connectedSites: ['s1', 's2'] }],
    nodes: [...workers, ...gateways].map((node) => ({ ...node, ready: 'True' as const, faults: [], knownMs: 60_000 })),
    reports: new Map([
      ...workers.map(
        ({ name, site }) => [name, received(reportOf({ connectivity: workerStatus(site, name) }))] as const,
      ),
      ...GATEWAYS.map((name) => [name, received(reportOf({ connectivity: gatewayStatus(name) }))] as const),
    ]),
  };
};

/** The same with what one node reports of itself changed. */
export const withReport = (
  inputs: ReturnType<typeof clusterInputs>,
  node: string,
  change: (status: ConnectivityStatus) => ConnectivityStatus,
): void => {
  const { report, ageMs } = inputs.reports.get(node)!;
  inputs.reports.set(node, received({ ...report, connectivity: change(report.connectivity!) }, ageMs));
};

/** A gateway answers nobody any more; with the groups as the nodes' probes leave them. */
export const withoutGateway = (inputs: ReturnType<typeof clusterInputs>, gateway: string): void => {
  for (const [node] of inputs.reports)
    if (node !== gateway)
      withReport(inputs, node, (status) => ({
        ...status,
        peers: { ...status.peers, [gateway]: peerOf({ state: 'Unhealthy' }) },
        groups: Object.fromEntries(
          Object.entries(status.groups).map(([name, group]) => [
            name,
            { ...group, members: { ...group.members, [gateway]: { tier: 0, isActive: false } } },
          ]),
        ),
      }));
  inputs.reports.set(gateway, { ...inputs.reports.get(gateway)!, ageMs: 60_000 });
};
