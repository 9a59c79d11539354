import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { applyChart } from '../../apps/chart.ts';
import { redisUrl } from '../../apps/redis-place.ts';
import { AGGREGATOR, NAMESPACE } from '../../apps/tokens.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { layoutOf, namespaceOf } from '../../layout/layout.ts';
import { inNamespace } from '../../machine/command.ts';
import { nodeJs } from '../../machine/paths.ts';
import { aggregatorEndpoint, viewerToken } from '../../status/viewer.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { timeUntil } from '../scenario.ts';
import { startMetricsServer, stopMetricsServer } from './metrics-server.ts';

/** Horizontal autoscalers of the chart: real ones, which Kubernetes' metrics-server tells what pods use. */

const layout = layoutOf({ agents: 'pods', redis: true, workers: 1 });
/** The lab has two processors: what is much there is little elsewhere. */
const autoscaling = { enabled: true, minReplicas: 2, maxReplicas: 3, targetCPUUtilizationPercentage: 60 };
const resources = { requests: { cpu: '100m', memory: '64Mi' } };
const VALUES = {
  relay: { ...{ enabled: true, auth: 'off', autoscaling, resources }, service: { type: 'ClusterIP' } },
  [AGGREGATOR]: { redis: { url: redisUrl(layout) }, autoscaling, resources },
};
const SCALED_MS = 240_000;

const load: ChildProcess[] = [];
const inControlPlane = inNamespace(namespaceOf(layout.controlPlane.name));
const startLoad = (argv: readonly string[], input = ''): void => {
  const [program, ...args] = [...inControlPlane, ...argv];
  const child = spawn(program!, args, { stdio: ['pipe', 'ignore', 'inherit'], detached: true });
  child.stdin.end(input);
  load.push(child);
};

beforeAll(async () => {
  await down();
  await up(layout);
  await applyChart(layout, undefined, { values: VALUES });
  await startMetricsServer(layout);
}, 500_000);
afterEach(() => {
  for (const child of load.splice(0)) process.kill(-child.pid!, 'SIGKILL');
});
afterAll(async () => {
  await stopMetricsServer();
  await down();
}, 60_000);

const ofDeployment = async (name: string, path: string): Promise<number> =>
  Number(await kubectl(layout, ['get', 'deployment', name, '-n', NAMESPACE, '-o', `jsonpath={${path}}`]));
const ready = (name: string): Promise<number> => ofDeployment(name, '.status.readyReplicas');
/** Whether the autoscaler has read what pods use. */
const isMeasured = async (name: string): Promise<boolean> => {
  const path = 'jsonpath={.status.currentMetrics[0].resource.current.averageUtilization}';
  return (await kubectl(layout, ['get', 'hpa', name, '-n', NAMESPACE, '-o', path])) !== '';
};

const serviceIp = (name: string): Promise<string> =>
  kubectl(layout, ['get', 'service', name, '-n', NAMESPACE, '-o', 'jsonpath={.spec.clusterIP}']);

test('at rest there are as many replicas as at least', { timeout: SCALED_MS }, async () => {
  for (const name of ['relay', AGGREGATOR]) {
    await timeUntil(`the autoscaler of ${name} measures`, () => isMeasured(name), SCALED_MS);
    expect(await ready(name)).toBe(2);
  }
});

test('a busy relay gets another replica', { timeout: SCALED_MS + 30_000 }, async () => {
  const program = join(import.meta.dirname, 'relay-load.scenario.ts');
  startLoad([nodeJs, program, await serviceIp('relay'), '3478']);
  await timeUntil('three replicas are ready', async () => (await ready('relay')) === 3, SCALED_MS);
});

test('a busy status aggregator gets another replica', { timeout: SCALED_MS + 30_000 }, async () => {
  const token = await viewerToken(layout);
  const url = `https://${await aggregatorEndpoint(layout)}/v1alpha1/view`;
  const ask = `while :; do curl -sk --max-time 5 --header @/dev/stdin -o /dev/null ${url} <<<"$header"; done`;
  // Not among the arguments, which every process may read.
  for (let client = 0; client < 4; client++)
    startLoad(['bash', '-c', `read -r header; ${ask}`], `Authorization: Bearer ${token}\n`);
  await timeUntil('three replicas are ready', async () => (await ready(AGGREGATOR)) === 3, SCALED_MS);
});
