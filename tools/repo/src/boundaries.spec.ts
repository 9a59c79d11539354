import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { root } from './tree.ts';

/**
 * The layer rule is only worth something when a violation is caught: the linter passes silently when it has no project
 * graph. So violations are planted here, and each must be found.
 */

const planted: string[] = [];
afterEach(() => {
  for (const file of planted.splice(0)) rmSync(file, { force: true });
});

const lint = (file: string): string => {
  const eslint = join(root, 'node_modules/eslint/bin/eslint.js');
  try {
    const env = { ...process.env, NX_DAEMON: 'false', NX_NO_CLOUD: 'true' };
    return execFileSync(process.execPath, [eslint, file], { cwd: root, encoding: 'utf8', env });
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
};

const plant = (file: string, text: string): string => {
  const path = join(root, file);
  planted.push(path);
  writeFileSync(path, text);
  return lint(path);
};

describe('the layer rule catches', { timeout: 60_000 }, () => {
  test('an app that imports an app', () => {
    expect(plant('apps/node-keeper/src/canary.ts', "export * from '@unbounded/cidr-allocator';\n")).toContain(
      'no-restricted-imports',
    );
  });

  test('an app that reaches into the folder of another', () => {
    expect(plant('apps/node-keeper/src/canary.ts', "export * from '../../../apps/cidr-allocator/src/main.ts';\n")).toContain(
      'no-restricted-imports',
    );
  });

  test('pure code that imports Nest', () => {
    expect(plant('libs/topology/src/canary.ts', "export { Module } from '@nestjs/common';\n")).toContain(
      'enforce-module-boundaries',
    );
  });

  test('pure code that imports the Kubernetes client', () => {
    expect(plant('libs/topology/src/canary.ts', "export { KubeConfig } from '@kubernetes/client-node';\n")).toContain(
      'enforce-module-boundaries',
    );
  });

  test('pure code that imports a library with effects', () => {
    expect(plant('libs/topology/src/canary.ts', "export { createRouteSocket } from '@unbounded/netlink';\n")).toContain(
      'enforce-module-boundaries',
    );
  });

  test('pure code that does I/O', () => {
    expect(plant('libs/ip/src/canary.ts', "export { readFileSync } from 'node:fs';\n")).toContain('no-restricted-imports');
  });

  test('a plan in an app that does I/O', () => {
    expect(plant('apps/node-dataplane/src/canary.plan.ts', "export { readFileSync } from 'node:fs';\n")).toContain(
      'no-restricted-imports',
    );
  });
});
