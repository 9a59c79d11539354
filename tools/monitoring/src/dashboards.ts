import type { Dashboard } from './dashboard.ts';
import { controlPlaneDashboard } from './dashboards/control-plane.ts';
import { egressDashboard } from './dashboards/egress.ts';
import { gatewayPoolDashboard } from './dashboards/gateway-pool.ts';
import { networkDashboard } from './dashboards/network.ts';
import { nodeDashboard } from './dashboards/node.ts';
import { relayDashboard } from './dashboards/relay.ts';
import { siteDashboard } from './dashboards/site.ts';

/** From the whole to its parts. */
export const DASHBOARDS: readonly Dashboard[] = [
  networkDashboard,
  siteDashboard,
  gatewayPoolDashboard,
  nodeDashboard,
  relayDashboard,
  egressDashboard,
  controlPlaneDashboard,
];

const inTitle = ({ title }: Dashboard): string => title.replace('Unbounded / ', '');

/** For docs/monitoring.md. */
export const dashboardTable = (): string =>
  [
    '| dashboard | answers |',
    '|---|---|',
    ...DASHBOARDS.map((board) => `| ${inTitle(board)} (\`${board.uid}\`) | ${board.description} |`),
  ].join('\n');
