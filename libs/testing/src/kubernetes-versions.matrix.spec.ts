import { execFile, execFileSync } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { afterEach, expect, test } from 'vitest';

import { startApiServer } from './index.ts';

/**
 * The oldest Kubernetes that the chart is for, and others before the one of the lab: their first releases, built from their
 * modules. Each runs all of the tests that use an API server and what they say of kinds, policies and programs.
 */

const VERSIONS = ['1.31', '1.32'];
const BUILD_MS = 30 * 60_000;
const SPECS_MS = 20 * 60_000;

const root = fileURLToPath(new URL('../../../', import.meta.url));
/** Where kinds, rights and policies meet the API server. */
const SPECS = [
  'libs/testing/src/stolen-token.kube.spec.ts',
  'libs/testing/src/access.kube.spec.ts',
  'libs/testing/src/chart.kube.spec.ts',
  'libs/testing/src/crd-validation.kube.spec.ts',
  'libs/kube/src',
  'apps/cidr-allocator/src',
  'apps/site-membership/src',
  'apps/gateway-health/src',
  'apps/relay/src/chart.kube.spec.ts',
  'apps/static-egress/src/access.kube.spec.ts',
  'apps/l2-networks/src/access.kube.spec.ts',
  'apps/tailnet-registrar/src/access.kube.spec.ts',
  'apps/tailnet/src/access.kube.spec.ts',
];

const programOf = (version: string): string => {
  const name = `kube-apiserver-${version}`;
  execFileSync(join(root, 'tools/assets/build'), [name], { stdio: 'inherit' });
  const assets =
    process.env['UNBOUNDED_ASSETS'] ?? process.env['UNBOUNDED_CACHE'] ?? join(homedir(), '.cache/unbounded');
  return join(assets, 'bin', name);
};

afterEach(() => {
  delete process.env['UNBOUNDED_KUBE_APISERVER'];
});

test.each(VERSIONS)(
  'kinds, policies and programs work with Kubernetes %s',
  { timeout: BUILD_MS + SPECS_MS },
  async (version) => {
    process.env['UNBOUNDED_KUBE_APISERVER'] = programOf(version);
    await using api = await startApiServer();
    const answer = (await api.cluster.transport.send({ method: 'GET', path: '/version' })) as { gitVersion: string };
    expect(answer.gitVersion).toBe(`v${version}.0`);
    const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--project', 'kube', ...SPECS];
    const options = { cwd: root, timeout: SPECS_MS, maxBuffer: 1 << 26 };
    const failed = await promisify(execFile)(join(root, 'tools/node'), vitest, options).then(
      () => '',
      (error: { stdout?: string; stderr?: string }) => `${error.stdout ?? ''}\n${error.stderr ?? ''}`,
    );
    expect(failed).toBe('');
  },
);
