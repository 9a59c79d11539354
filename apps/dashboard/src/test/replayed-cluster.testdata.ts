import { request } from 'node:https';
import { gzipSync } from 'node:zlib';
import {
  type ApiServer,
  type AppProcess,
  installAccessRules,
  nodeObject,
  poolObject,
  publicKeyFor,
  resetCluster,
  siteObject,
  startApiServer,
  startApp,
  until,
} from '@unbounded/testing';
import { NAMESPACE } from '@unbounded/testing/chart';
import type { NodeReport } from '@unbounded/status';
import { reportsOf, SITES } from './reports.testdata.ts';

/** A real API server with the chart's access rules, a real aggregator, and the reports of nodes with their own tokens. */
export interface ReplayedCluster extends AsyncDisposable {
  /** Of the page. */
  readonly url: string;
  /** May read the status. */
  readonly viewerToken: string;
  /** Pushes what a node reports from now on. */
  report(node: string, report: NodeReport): Promise<void>;
  /** The process of the aggregator, as it is now. */
  readonly aggregator: AppProcess;
}

const AUDIENCE = 'status-aggregator.net.unbounded-cloud.io';
const PUSH_EVERY_MS = 8000;
const SITE_LABEL = 'net.unbounded-cloud.io/site';

const tokenOf = async (api: ApiServer, path: string, spec: object): Promise<string> => {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
  const answer = await api.cluster.transport.send({ method: 'POST', path: `/api/v1/namespaces/${path}/token`, body });
  return (answer as { readonly status: { readonly token: string } }).status.token;
};

/** Nodes with their sites, and pools with their gateways, as the controllers of the product leave them. */
const createObjects = async (api: ApiServer): Promise<void> => {
  const send = (method: 'POST' | 'PATCH', path: string, body: object) =>
    api.cluster.transport.send({
      ...{ method, path, body },
      ...(method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {}),
    });
  const ours = '/apis/net.unbounded-cloud.io/v1alpha1';
  for (const { name, workers, gateways } of SITES) {
    await send('POST', `${ours}/sites`, siteObject(name));
    for (const node of [...workers, ...gateways])
      await send('POST', '/api/v1/nodes', nodeObject({ name: node, labels: { [SITE_LABEL]: name } }));
    await send('POST', `${ours}/gatewaypools`, poolObject(`${name}-gateways`));
    const status = {
      nodes: gateways.map((gateway) => ({ name: gateway, wireGuardPublicKey: publicKeyFor(gateway) })),
      connectedSites: [name],
    };
    await send('PATCH', `${ours}/gatewaypools/${name}-gateways/status`, { status });
  }
};

const post = (port: number, token: string, body: object): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-encoding': 'gzip',
      'content-type': 'application/json',
    };
    const to = {
      host: '127.0.0.1',
      port,
      path: '/v1alpha1/reports',
      method: 'POST',
      headers,
      rejectUnauthorized: false,
    };
    request(to, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on('error', reject)
      .end(gzipSync(JSON.stringify(body)));
  });

const startAggregator = async (api: ApiServer) => {
  const aggregator = startApp('status-aggregator', ['--kubeconfig', api.kubeconfig, '--port', '0']);
  const port = await until('the API', () => aggregator.log.find(({ msg }) => msg === 'serving the API')?.['port']);
  return { aggregator, port: port as number };
};

export const replayCluster = async (): Promise<ReplayedCluster> => {
  const api = await startApiServer();
  await resetCluster(api.cluster);
  await installAccessRules(api);
  await createObjects(api);
  api.kubectl('create', 'serviceaccount', 'viewer', '-n', 'default');
  const role = ['--clusterrole=unbounded:status-viewer', '--serviceaccount=default:viewer'];
  api.kubectl('create', 'clusterrolebinding', 'viewer', ...role);
  const viewerToken = await tokenOf(api, 'default/serviceaccounts/viewer', { audiences: [] });
  const { aggregator, port } = await startAggregator(api);
  const tokens = new Map<string, string>();
  let revision = 0;
  const current = new Map<string, NodeReport>();
  const report = async (node: string, whole: NodeReport): Promise<void> => {
    current.set(node, whole);
    const boundObjectRef = { apiVersion: 'v1', kind: 'Node', name: node };
    const spec = { audiences: [AUDIENCE], boundObjectRef };
    const token = tokens.get(node) ?? (await tokenOf(api, `${NAMESPACE}/serviceaccounts/node-dataplane`, spec));
    tokens.set(node, token);
    const status = await post(port, token, { epoch: 'replayed', revision: ++revision, report: whole });
    if (status !== 204) throw new Error(`the report of ${node} is answered ${status}`);
  };
  for (const [node, whole] of reportsOf()) await report(node, whole);
  const pushAll = async (): Promise<void> => {
    for (const [node, whole] of current) await report(node, whole);
  };
  // As agents do: a report that is older than 25 s does not count.
  const again = setInterval(() => void pushAll().catch(() => undefined), PUSH_EVERY_MS);
  await until('ready', async () => (await aggregator.health('/readyz')).status === 200);
  return {
    ...{ url: `https://localhost:${port}/`, viewerToken, report, aggregator },
    async [Symbol.asyncDispose]() {
      clearInterval(again);
      await aggregator.stop();
      await api.stop();
    },
  };
};
