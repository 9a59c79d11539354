import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { type ApiServer, borrowApiServer, until } from './index.ts';
import { accessRules, helmProgram, type Manifest, namespaceFile, renderChartOnce, yamlOf } from './chart.ts';

/** Rights of agents: each chart brings its own, and Kubernetes puts them together. */

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}
type Role = Manifest & { readonly rules?: readonly Rule[] };
const roleOf = (objects: readonly Manifest[], name: string): Role =>
  objects.find(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === name)!;

const AGENTS = ['node-dataplane', 'tailnet'];
const all = { 'l2-networks': { enabled: true }, 'tailnet-registrar': { enabled: true }, tailnet: { enabled: true } };
const text = (rules: readonly Rule[] = []): string[] => rules.map((rule) => JSON.stringify(rule)).toSorted();

/** The rule with its keys in one order. */
const sorted = (rule: string): string => {
  const { apiGroups, resources, verbs, ...rest } = JSON.parse(rule) as Rule;
  return JSON.stringify({ apiGroups, resources, verbs, ...rest });
};

describe('kube-controller-manager', () => {
  const folder = mkdtempSync(join(tmpdir(), 'unbounded-aggregation-'));
  let api: ApiServer;
  let manager: ChildProcess;
  beforeAll(async () => {
    api = await borrowApiServer();
    api.kubectl('apply', '-f', namespaceFile);
    const program = join(folder, 'kube-controller-manager');
    symlinkSync(join(dirname(helmProgram()), 'kubernetes'), program);
    const only = ['--controllers=clusterrole-aggregation-controller', '--leader-elect=false', '--secure-port=0'];
    const argv = ['--pdeathsig', 'KILL', program, `--kubeconfig=${api.kubeconfig}`, ...only];
    manager = spawn('setpriv', argv, { stdio: 'ignore' });
  });
  afterAll(async () => {
    manager?.kill('SIGKILL');
    await api?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('gives agents the rights that tests without it count with', { timeout: 60_000 }, async () => {
    api.apply(yamlOf(renderChartOnce({ values: all }).filter(({ kind }) => /Role(Binding)?$/.test(kind))));
    const expected = accessRules(all);
    for (const agent of AGENTS) {
      const name = `unbounded:${agent}-aggregated`;
      const rulesOf = (): readonly Rule[] | undefined =>
        (JSON.parse(api.kubectl('get', 'clusterrole', name, '-o', 'json')) as Role).rules ?? undefined;
      // It leaves out what a role before has already.
      const wanted = [...new Set(text(roleOf(expected, name).rules))];
      const found = await until(`rules of ${name}`, () => {
        const rules = text(rulesOf());
        return rules.length >= wanted.length ? rules : undefined;
      });
      expect(found.map((rule) => sorted(rule)).toSorted()).toEqual(wanted.map((rule) => sorted(rule)).toSorted());
    }
  });
});

test('agents are bound to what is aggregated for them alone, and no chart binds the account of another’s agent', () => {
  const bindings = renderChartOnce({ values: all }) as (Manifest & {
    roleRef?: { name: string };
    subjects?: { name: string }[];
  })[];
  const cluster = bindings.filter(({ kind }) => kind === 'ClusterRoleBinding');
  for (const agent of AGENTS)
    expect(
      cluster
        .filter(({ subjects }) => subjects!.some(({ name }) => name === agent))
        .map(({ roleRef }) => roleRef!.name),
    ).toEqual([`unbounded:${agent}-aggregated`]);
});

test('what is off gives agents no right', () => {
  const resourcesOf = (values: object, agent: string): string =>
    JSON.stringify(roleOf(accessRules(values), `unbounded:${agent}-aggregated`).rules);
  expect(resourcesOf(all, 'node-dataplane')).toContain('"networkendpoints"');
  expect(resourcesOf({}, 'node-dataplane')).not.toContain('"networkendpoints"');
  expect(resourcesOf({}, 'node-dataplane')).toContain('"gatewaypoolnodes/status"');
  expect(resourcesOf(all, 'tailnet')).toContain('"tailnetdevices/status"');
  expect(resourcesOf(all, 'node-dataplane')).not.toContain('"tailnetdevices');
});
