import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from './tree.ts';

/**
 * The layer rule is only worth something when a violation is caught: the linter passes silently when it has no project
 * graph. So violations are planted here, and each must be found.
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

interface LintResult {
  readonly filePath: string;
  readonly messages: readonly { readonly ruleId: string | null }[];
}

const lint = (paths: readonly string[]): LintResult[] => {
  const eslint = join(root, 'node_modules/eslint/bin/eslint.js');
  const env = { ...process.env, NX_DAEMON: 'false', NX_NO_CLOUD: 'true' };
  const run = (): string =>
    execFileSync(join(root, 'tools/node'), [eslint, '--format=json', ...paths], { cwd: root, encoding: 'utf8', env });
  try {
    return JSON.parse(run()) as LintResult[];
  } catch (error) {
    return JSON.parse((error as { stdout: string }).stdout) as LintResult[];
  }
};

describe('the layer rule catches', () => {
  let found: LintResult[];
  beforeAll(() => {
    for (const [, file, imported] of PLANTED) writeFileSync(join(root, file), `export * from '${imported}';\n`);
    found = lint(PLANTED.map(([, file]) => file));
  }, 60_000);
  afterAll(() => {
    for (const [, file] of PLANTED) rmSync(join(root, file), { force: true });
  });

  test.each(PLANTED)('%s', (_, file, __, rule) => {
    const messages = found.find(({ filePath }) => filePath === join(root, file))?.messages ?? [];
    expect(messages.map(({ ruleId }) => ruleId)).toContain(rule);
  });
});
