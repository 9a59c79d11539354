import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ESLint } from 'eslint';
import { beforeAll, describe, expect, test } from 'vitest';
import { root } from '@unbounded/testing/tree';

/**
 * The layer rule is only worth something when a violation is caught: the linter passes silently when it has no project
 * graph. So it is given violations here, as files that are not there, and must find each.
 */

const APP = 'apps/node-keeper/src/canary';
const CORE = 'libs/topology/src/canary';

const PLANTED = [
  ['an app that imports an app', `${APP}-1.ts`, '@unbounded/cidr-allocator', 'no-restricted-imports'],
  [
    'an app that reaches into the folder of another',
    `${APP}-2.ts`,
    '../../../apps/cidr-allocator/src/main.ts',
    'no-restricted-imports',
  ],
  ['pure code that imports Nest', `${CORE}-1.ts`, '@nestjs/common', '@nx/enforce-module-boundaries'],
  [
    'pure code that imports the Kubernetes client',
    `${CORE}-2.ts`,
    '@kubernetes/client-node',
    '@nx/enforce-module-boundaries',
  ],
  [
    'pure code that imports a library with effects',
    `${CORE}-3.ts`,
    '@unbounded/netlink',
    '@nx/enforce-module-boundaries',
  ],
  ['pure code that does I/O', 'libs/ip/src/canary.ts', 'node:fs', 'no-restricted-imports'],
  ['a plan in an app that does I/O', 'apps/node-dataplane/src/canary.plan.ts', 'node:fs', 'no-restricted-imports'],
] as const;

/** The rules that each text breaks, in the order of PLANTED. No file is written: other tests read the tree at the same time. */
const lint = async (): Promise<(string | null)[][]> => {
  const eslint = new ESLint({ cwd: root });
  const found: (string | null)[][] = [];
  for (const [, file, imported] of PLANTED) {
    const results = await eslint.lintText(`export * from '${imported}';\n`, { filePath: join(root, file) });
    found.push(results.flatMap(({ messages }) => messages.map(({ ruleId }) => ruleId)));
  }
  return found;
};

describe('the layer rule catches', () => {
  let found: (string | null)[][];
  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'unbounded-graph-'));
    // The rule reads the graph that Nx made last.
    const graph = ['node_modules/.bin/nx', 'graph', `--file=${join(folder, 'graph.json')}`];
    const env = { ...process.env, NX_DAEMON: 'false', NX_NO_CLOUD: 'true' };
    execFileSync(join(root, 'tools/node'), graph, { cwd: root, env, stdio: 'pipe' });
    rmSync(folder, { recursive: true });
    found = await lint();
  }, 60_000);

  test.each(PLANTED.map((planted, index) => [...planted, index] as const))('%s', (_, __, ___, rule, index) => {
    expect(found[index]).toContain(rule);
  });
});
