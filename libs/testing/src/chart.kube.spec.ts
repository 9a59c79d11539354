import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { annotations, GATEWAY_TAINT, labels } from '@unbounded/crds';
import type { Node } from '@unbounded/kube';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { type ApiServer, startApiServer, until } from './index.ts';
import {
  chartFolder,
  helmProgram,
  isKind,
  type Manifest,
  NAMESPACE,
  namespaceFile,
  RELEASE,
  renderChart,
  renderChartOnce,
  renderText,
  runHelm,
  yamlOf,
} from './chart.ts';
import { merged, only } from './chart-leaves.ts';
import { type Refusals, refusalsOf, refusedOf } from './chart-refusals.ts';
import { alone, apps, NEEDED, valuesFile, without } from './chart-subsets.ts';
import { everything } from './chart-values.ts';
import { COMMAND_MEMORY } from './go-memory.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await startApiServer();
  api.kubectl('apply', '-f', namespaceFile);
});
afterAll(() => api?.stop());

const helmEnvironment = () => ({ ...process.env, ...COMMAND_MEMORY, KUBECONFIG: api.kubeconfig });
const helm = (...args: string[]): string =>
  execFileSync(helmProgram(), args, { encoding: 'utf8', stdio: 'pipe', env: helmEnvironment() });

const accountsOf = (part: string): string[] => {
  if (part === 'tailnet') return ['tailnet', 'tailnet-devices'];
  return part === 'tailnet-registrar' ? [part, `${part}-uninstall`] : [part];
};

/** The first: there are no kinds yet. */
test('an upgrade brings new kinds along; an uninstall takes everything but the kinds', () => {
  const where = ['--namespace', NAMESPACE];
  const kinds = (): string[] => api.kubectl('get', 'crd', '-o', 'name').trim().split('\n');
  const kind = 'gatewaypoolpeerings.net.unbounded-cloud.io';
  helm('install', RELEASE, chartFolder, ...where);
  // An API server that is about to open a kind's storage when the kind is deleted looks again after five minutes.
  api.kubectl('get', kind);
  api.kubectl('delete', 'crd', kind);
  helm('upgrade', RELEASE, chartFolder, ...where);
  expect(kinds()).toHaveLength(readdirSync(`${chartFolder}/charts/crds/files`).length);
  helm('uninstall', RELEASE, ...where);
  expect(kinds()).toHaveLength(17);
  const left = api.kubectl('get', 'clusterrole,clusterrolebinding,validatingadmissionpolicy', '-o', 'name');
  expect(left).not.toContain('unbounded');
  expect(api.kubectl('get', 'all,serviceaccount,role,secret,resourcequota', ...where, '-o', 'name')).toBe('');
  expect(api.kubectl('get', 'role,rolebinding', '--namespace', 'default', '-o', 'name')).toBe('');
});

test('what the guide has for Nodes after an uninstall takes all of ours from them, and nothing else', () => {
  const guide = readFileSync(join(chartFolder, '../../docs/operations.md'), 'utf8');
  const script = /```sh\n(for node in [^`]*)```/.exec(guide)![1]!;
  const condition = (type: string, reason: string) => ({ type, reason, status: 'False', message: '' });
  const others = { labels: { 'example.com/a': 'b' }, annotations: { 'example.com/net.unbounded-cloud.io': 'c' } };
  const create = (name: string, ours: readonly string[], conditions: readonly object[], taints: readonly object[]) => {
    const keys = Object.fromEntries(ours.map((key) => [key, 'x']));
    const metadata = {
      ...{ name, labels: { ...others.labels, ...(ours.length > 0 && { [labels.site]: 's1' }) } },
      annotations: { ...others.annotations, ...keys },
    };
    api.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata, spec: { taints } }), '--server-side');
    api.kubectl('patch', 'node', name, '--subresource=status', '-p', JSON.stringify({ status: { conditions } }));
  };
  const kept = { key: 'example.com/taint', value: 'a', effect: 'NoSchedule' };
  const theirs = [condition('Ready', 'KubeletReady'), condition('NetworkUnavailable', 'OtherIsUp')];
  const ours = ['UnboundedDegraded', 'UnboundedL2'].map((type) => condition(type, 'A'));
  create(
    'gateway',
    Object.values(annotations),
    [...ours, condition('NetworkUnavailable', 'NetworkReady')],
    [GATEWAY_TAINT, kept],
  );
  create('worker', [annotations.wireGuardPublicKey], [...theirs, ours[0]!], []);
  create('stranger', [], theirs, []);
  const path = `${dirname(api.kubeconfig)}:${process.env['PATH']}`;
  const env = { ...helmEnvironment(), PATH: path };
  for (let turn = 0; turn < 2; turn++) execFileSync('sh', ['-ec', script], { env, stdio: 'pipe' });
  const stateOf = (name: string) => {
    const { metadata, spec, status } = JSON.parse(api.kubectl('get', 'node', name, '-o', 'json')) as Node;
    const { 'kubernetes.io/hostname': _, ...left } = metadata.labels ?? {};
    const types = (status?.conditions ?? []).map(({ type }) => type).sort();
    return { labels: left, annotations: metadata.annotations, types, taints: spec?.taints?.map(({ key }) => key) };
  };
  const NOT_READY = 'node.kubernetes.io/not-ready';
  const tainted = (...taints: string[]) => [...taints, NOT_READY].sort();
  const typesOfOthers = ['NetworkUnavailable', 'Ready'];
  for (const [name, types, taints] of [
    ['gateway', [], tainted(kept.key)],
    ['worker', typesOfOthers, tainted()],
    ['stranger', typesOfOthers, tainted()],
  ] as const)
    expect({ name, ...stateOf(name) }).toEqual({ name, ...others, types, taints });
});

test.each([
  ['as it is', {}],
  ['with every value set', everything],
])('lint finds nothing in the chart, in its subcharts and in what is packed, %s', (_, values) => {
  const found = runHelm(['lint', '--strict', '--with-subcharts', chartFolder], values);
  const folders = readdirSync(join(chartFolder, 'charts')).length;
  expect(found).toContain(`${folders + 1} chart(s) linted, 0 chart(s) failed`);
  expect(found).not.toMatch(/\[(ERROR|WARNING)\]/);
});

test('a small cluster has one replica of each program, a large one three or more of most', () => {
  const replicasOf = (name: string) =>
    (renderChartOnce({ values: valuesFile(name) }) as (Manifest & { spec: { replicas?: number } })[]).flatMap(
      ({ kind, metadata, spec }) => (kind === 'Deployment' ? [[metadata.name, spec.replicas] as const] : []),
    );
  const kindsOf = (name: string) => renderChartOnce({ values: valuesFile(name) }).map(({ kind }) => kind);
  expect(replicasOf('values-small.yaml').filter(([, replicas]) => replicas !== 1)).toEqual([]);
  expect(kindsOf('values-small.yaml')).not.toContain('PodDisruptionBudget');
  expect(replicasOf('values-large.yaml').filter(([, replicas]) => replicas !== 3)).toEqual([
    ['relay', undefined],
    ['status-aggregator', 1],
  ]);
  expect(kindsOf('values-large.yaml')).toContain('HorizontalPodAutoscaler');
});

test('two renderings are the same, byte by byte, and so is that of the packed chart', () => {
  const folder = mkdtempSync(join(tmpdir(), 'unbounded-chart-'));
  try {
    helm('package', chartFolder, '--destination', folder);
    const [packed] = readdirSync(folder);
    for (const values of [{}, everything]) {
      const first = renderText({ values });
      expect(renderText({ values })).toBe(first);
      expect(renderText({ values }, join(folder, packed!))).toBe(first);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

const isOf =
  (name: string) =>
  ({ kind, metadata }: Manifest): boolean =>
    kind === (name === 'crds' ? 'CustomResourceDefinition' : 'ServiceAccount') &&
    (name === 'crds' || metadata.name === name);
describe('the API server', () => {
  const sets: readonly [string, object][] = [
    ['as it is', {}],
    ['with every value set', everything],
    ['for a small cluster', valuesFile('values-small.yaml')],
    ['for a large cluster', valuesFile('values-large.yaml')],
  ];
  const rendered = (values: object): readonly Manifest[] => renderChartOnce({ values });
  const refused = (values: object): string[] => refusedOf(refusals, rendered(values));
  let refusals: Refusals;
  beforeAll(() => {
    api.apply(yamlOf(rendered({}).filter(isKind)), '--server-side');
    refusals = refusalsOf(
      api,
      sets.map(([, values]) => rendered(values)),
    );
  });

  test.each(sets)('takes every object, %s', (_, values) => {
    expect(rendered(values).length).toBeGreaterThan(100);
    expect(refused(values)).toEqual([]);
  });

  test('is asked for each object: what it refuses is found among others', () => {
    const account = rendered({}).find(({ kind }) => kind === 'ServiceAccount')!;
    const wrong = { ...account, automountServiceAccountToken: 'wrong' };
    const found = refusalsOf(api, [[account, wrong], [account]]);
    expect(refusedOf(found, [account])).toEqual([]);
    expect(refusedOf(found, [account, wrong])).toEqual([expect.stringContaining('automountServiceAccountToken')]);
  });
});

test.each(apps)('%s can be enabled alone, with what it needs', (name) => {
  const needed = NEEDED[name] ?? [];
  const objects = renderChartOnce({ values: alone(name) });
  const accounts = objects.filter(({ kind }) => kind === 'ServiceAccount').map(({ metadata }) => metadata.name);
  const own = [name, ...needed].flatMap((part) => (part === 'crds' ? [] : accountsOf(part)));
  expect(accounts.toSorted()).toEqual(own.toSorted());
  expect(objects.some(isOf(name))).toBe(true);
});

test.each(apps)('%s can be disabled alone, with what needs it', (name) => {
  expect(renderChartOnce({ values: without(name) }).some(isOf(name))).toBe(false);
});

test('monitoring can be enabled alone, and is not there unless it is', () => {
  const kindsOf = (values: object): Set<string> => new Set(renderChartOnce({ values }).map(({ kind }) => kind));
  const own = ['ConfigMap', 'PodMonitor', 'PrometheusRule'];
  expect([...kindsOf(only('monitoring'))]).toEqual(expect.arrayContaining(own));
  expect([...kindsOf({})].filter((kind) => own.includes(kind))).toEqual([]);
});

test.each([
  ['tailnet', 'alone', only('tailnet'), 'tailnet.enabled: true: must be false without tailnet-registrar.enabled: true'],
  ['relay', 'alone', only('relay'), 'relay.enabled: true: must be false without gateway-health.enabled: true'],
  [
    ...['node-dataplane', 'with tailnet'],
    { 'node-dataplane': { tailnet: true } },
    'node-dataplane.tailnet: true: must be false without tailnet.enabled: true',
  ],
  [
    ...['node-dataplane', 'with l2'],
    { 'node-dataplane': { l2: 'On' } },
    'node-dataplane.l2: On: must be Off without l2-networks.enabled: true',
  ],
] as [string, string, object, string][])('%s %s is refused, and what it needs is said', (_, __, values, message) => {
  expect(() => renderChart({ values })).toThrow(message);
});

test('a relay with a secret of its own and no list of keys needs nobody', () => {
  const values = merged(only('relay'), {
    relay: { links: { secretName: 'own' }, allowedKeys: { enabled: false } },
  });
  expect(renderChart({ values }).some(isOf('relay'))).toBe(true);
});

describe('an uninstallation with a registrar of a tailnet', () => {
  const where = ['--namespace', NAMESPACE];
  const job = 'tailnet-registrar-uninstall';
  const programs = (): string => api.kubectl('get', 'deployment', ...where, '-o', 'name');
  const hooks = (): string =>
    [
      api.kubectl('get', 'job,serviceaccount', ...where, '-o', 'name'),
      api.kubectl('get', 'clusterrole,clusterrolebinding', '-o', 'name'),
    ].join('');

  const uidOfJob = (): string =>
    api.kubectl('get', 'job', job, ...where, '--ignore-not-found', '-o', 'jsonpath={.metadata.uid}');
  /** As the controller of Jobs does, which is not here. @returns the uid of the Job @param before of one that has ended */
  const endJob = async (type: 'Complete' | 'Failed', before = ''): Promise<string> => {
    const uid = await until('a Job', () => [uidOfJob()].find((found) => found !== before && found !== ''));
    const time = new Date().toISOString();
    const is = (name: string) => ({ type: name, status: 'True', lastTransitionTime: time, lastProbeTime: time });
    const ended =
      type === 'Complete'
        ? { succeeded: 1, completionTime: time, conditions: [is('SuccessCriteriaMet'), is('Complete')] }
        : { failed: 1, conditions: [is('FailureTarget'), is('Failed')] };
    const patch = JSON.stringify({ status: { startTime: time, ...ended } });
    api.kubectl('patch', 'job', job, ...where, '--subresource=status', '--type=merge', '--patch', patch);
    return uid;
  };
  const uninstall = () =>
    promisify(execFile)(helmProgram(), ['uninstall', RELEASE, ...where, '--timeout=60s'], { env: helmEnvironment() });

  test('waits for its Job: when that fails nothing goes, when it succeeds everything', async () => {
    helm('install', RELEASE, chartFolder, ...where, '--set', 'tailnet-registrar.enabled=true', '--take-ownership');
    expect(hooks()).not.toContain(job);
    const failing = uninstall().then(
      () => 'uninstalled',
      ({ stderr }: { stderr: string }) => stderr,
    );
    const failed = await endJob('Failed');
    expect(await failing).toMatch(/pre-delete|failed/);
    expect([programs().includes('tailnet-registrar'), hooks().includes(`job.batch/${job}`)]).toEqual([true, true]);
    const succeeding = uninstall();
    await endJob('Complete', failed);
    await succeeding;
    expect([programs(), hooks().includes(job)]).toEqual(['', false]);
  });
});
