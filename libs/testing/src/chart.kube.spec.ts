import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';

import { afterAll, beforeAll, expect, test } from 'vitest';

import { type ApiServer, startApiServer } from './index.ts';
import { chartFolder, helmProgram, isKind, NAMESPACE, namespaceFile, RELEASE, renderChart, yamlOf } from './chart.ts';
import { everything } from './chart-values.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await startApiServer();
  api.kubectl('apply', '-f', namespaceFile);
});
afterAll(() => api?.stop());

const helm = (...args: string[]): string =>
  execFileSync(helmProgram(), args, {
    encoding: 'utf8',
    stdio: 'pipe',
    env: { ...process.env, KUBECONFIG: api.kubeconfig },
  });

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

test.each([
  ['as it is', {}],
  ['with every value set', everything],
])('the API server takes every object, %s', (_, values) => {
  const objects = renderChart({ values });
  api.apply(yamlOf(objects.filter(isKind)), '--server-side');
  const answers = api.apply(yamlOf(objects), '--server-side', '--dry-run=server').trim().split('\n');
  expect(answers).toHaveLength(objects.length);
});
