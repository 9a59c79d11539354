import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { files, root } from '@unbounded/testing/tree';

/** `a.plan.spec.ts` -> `.plan`, `.spec` */
const rolesOf = (file: string): string[] =>
  basename(file)
    .split('.')
    .slice(1, -1)
    .map((part) => `.${part}`);

const documented = new Set(
  [...readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8').matchAll(/`\*((?:\.\w+)+)\.(?:ts|c)`/g)].flatMap(
    ([, roles]) => roles!.split(/(?=\.)/),
  ),
);

const undocumented = (names: readonly string[]): string[] =>
  names.filter((name) => rolesOf(name).some((role) => !documented.has(role)));

test('what stands at the end of a file’s name is explained in CONTRIBUTING.md', () => {
  const sources = files('*.ts').filter((file) => !file.includes('/gen/') && !/^[^/]+\.(config)\.ts$/.test(file));
  expect(undocumented(sources)).toEqual([]);
});

test('a name that is not explained is found', () => {
  expect(
    undocumented(['libs/ip/src/prefix.thing.ts', 'libs/ip/src/prefix.ts', 'libs/ip/src/prefix.plan.spec.ts']),
  ).toEqual(['libs/ip/src/prefix.thing.ts']);
});
