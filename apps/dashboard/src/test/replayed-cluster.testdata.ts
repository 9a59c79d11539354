import type { NodeReport } from '@unbounded/status';
import {
  type ApiServer,
  type AppProcess,
  installAccessRules,
  resetCluster,
  startApiServer,
  startApp,
  until,
} from '@unbounded/testing';
import { type ReplayedNodes, startNodes, tokenOf } from './replayed-nodes.testdata.ts';
import { createObjects } from './replayed-objects.testdata.ts';
import { type ReplayedSite, reportsOf, SITES } from './reports.testdata.ts';

/** A real API server with the chart's access rules, a real aggregator, and the reports of nodes with their own tokens. */
export interface ReplayedCluster extends AsyncDisposable, Pick<ReplayedNodes, 'report'> {
  /** Of the page. */
  readonly url: string;
  /** May read the status. */
  readonly viewerToken: string;
  /** What nodes reported first. */
  readonly reports: ReadonlyMap<string, NodeReport>;
  /** The longest time in which all nodes had reported once more, in ms. */
  readonly slowestTurnMs: number;
}

const startAggregator = async (api: ApiServer): Promise<{ readonly aggregator: AppProcess; readonly port: number }> => {
  const aggregator = startApp('status-aggregator', ['--kubeconfig', api.kubeconfig, '--port', '0']);
  const port = await until('the API', () => aggregator.log.find(({ msg }) => msg === 'serving the API')?.['port']);
  return { aggregator, port: port as number };
};

const createViewer = async (api: ApiServer): Promise<string> => {
  api.kubectl('create', 'serviceaccount', 'viewer', '-n', 'default');
  const role = ['--clusterrole=unbounded:status-viewer', '--serviceaccount=default:viewer'];
  api.kubectl('create', 'clusterrolebinding', 'viewer', ...role);
  return tokenOf(api, 'default/serviceaccounts/viewer', { audiences: [], expirationSeconds: 7200 });
};

export const replayCluster = async (sites: readonly ReplayedSite[] = SITES): Promise<ReplayedCluster> => {
  const api = await startApiServer();
  await resetCluster(api.cluster);
  await installAccessRules(api);
  await createObjects(api, sites);
  const viewerToken = await createViewer(api);
  const { aggregator, port } = await startAggregator(api);
  const reports = reportsOf(sites);
  const nodes = await startNodes(api, port, reports);
  await until('ready', async () => (await aggregator.health('/readyz')).status === 200);
  return {
    ...{ url: `https://localhost:${port}/`, viewerToken, reports },
    report: (node, report) => nodes.report(node, report),
    get slowestTurnMs() {
      return nodes.slowestTurnMs;
    },
    async [Symbol.asyncDispose]() {
      await nodes.stop();
      await aggregator.stop();
      await api.stop();
    },
  };
};
