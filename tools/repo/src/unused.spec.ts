import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { root } from '@unbounded/testing/tree';

/** `tools/test check` runs knip with knip.json over the tree: what is planted here shows that it finds what it is there for. */

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const manifest = (name: string, rest: object = {}): string =>
  JSON.stringify({ name, version: '0.1.0', private: true, type: 'module', ...rest });

/** What knip says of a workspace of two libraries with these files beside those that use each other well. */
const findings = (planted: Readonly<Record<string, string>>): string => {
  const folder = mkdtempSync(join(tmpdir(), 'unused-'));
  folders.push(folder);
  const tree: Readonly<Record<string, string>> = {
    'package.json': manifest('planted', { workspaces: ['apps/*', 'libs/*'], dependencies: {} }),
    'libs/lib/package.json': manifest('@planted/lib', { exports: { '.': './src/index.ts' } }),
    'libs/lib/src/index.ts': "export { one } from './one.ts';\n",
    'libs/lib/src/one.ts': 'export const one = 1;\n',
    'apps/app/package.json': manifest('@planted/app', { dependencies: { '@planted/lib': '0.1.0' } }),
    'apps/app/src/main.ts': "import { one } from '@planted/lib';\nconsole.log(one);\n",
    ...planted,
  };
  for (const [name, text] of Object.entries(tree)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  mkdirSync(join(folder, 'node_modules/@planted'), { recursive: true });
  symlinkSync('../../libs/lib', join(folder, 'node_modules/@planted/lib'));
  cpSync(join(root, 'knip.json'), join(folder, 'knip.json'));
  const knip = join(root, 'node_modules/knip/bin/knip.js');
  const { stdout } = spawnSync(
    join(root, 'tools/node'),
    [knip, '--no-progress', '--no-config-hints', '--reporter=compact'],
    {
      cwd: folder,
      encoding: 'utf8',
    },
  );
  return stdout;
};

test('a tree without any is clean', () => {
  expect(findings({})).toBe('');
});

test('an export that no other package uses is found, of a value and of a type', () => {
  const found = findings({
    'libs/lib/src/index.ts': "export { one, two, type Three } from './one.ts';\n",
    'libs/lib/src/one.ts': 'export const one = 1;\nexport const two = 2;\nexport type Three = 3;\n',
  });
  expect(found).toMatch(/libs\/lib\/src\/index\.ts: two/);
  expect(found).toMatch(/libs\/lib\/src\/index\.ts: Three/);
});

test('a file that nothing imports, a dependency that is not declared, and one that is not used are found', () => {
  const found = findings({
    'libs/lib/src/forgotten.ts': 'export const forgotten = 1;\n',
    'libs/lib/src/one.ts': "import { z } from 'zod';\nexport const one = z;\n",
    'libs/lib/package.json': manifest('@planted/lib', {
      exports: { '.': './src/index.ts' },
      dependencies: { 'not-used': '1.0.0' },
    }),
  });
  expect(found).toMatch(/forgotten\.ts/);
  expect(found).toMatch(/one\.ts: zod/);
  expect(found).toMatch(/package\.json: not-used/);
});
