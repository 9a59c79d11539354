import { execFile, execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { type ApiServer, startApiServer, until } from './index.ts';
import { chartFolder, helmProgram, isKind, NAMESPACE, namespaceFile, RELEASE, renderChart, yamlOf } from './chart.ts';
import { everything } from './chart-values.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await startApiServer();
  api.kubectl('apply', '-f', namespaceFile);
});
afterAll(() => api?.stop());

const helmEnvironment = () => ({ ...process.env, KUBECONFIG: api.kubeconfig });
const helm = (...args: string[]): string =>
  execFileSync(helmProgram(), args, { encoding: 'utf8', stdio: 'pipe', env: helmEnvironment() });

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
