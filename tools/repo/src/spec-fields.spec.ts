import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kinds } from '@unbounded/crds';
import { expect, test } from 'vitest';
import { root } from '@unbounded/testing/tree';

/** A field that nothing reads promises its users what nobody keeps. */

interface Json {
  readonly properties?: Readonly<Record<string, Json>>;
  readonly items?: Json;
}

const fieldsOf = ({ properties = {}, items }: Json, path: string): string[] => [
  ...Object.entries(properties).flatMap(([name, field]) => [`${path}.${name}`, ...fieldsOf(field, `${path}.${name}`)]),
  ...(items ? fieldsOf(items, path) : []),
];

const isTest = (file: string): boolean => /\.(spec|scenario|testdata)\.ts$|\/test\//.test(file);
const readers = globSync('{apps,libs}/*/src/**/*.ts', { cwd: root })
  .filter((file) => !isTest(file) && !/^libs\/(crds|testing)\//.test(file))
  .map((file) => readFileSync(join(root, file), 'utf8'))
  .join('\n');

test('every field of a spec is read by a program', () => {
  const fields = kinds.flatMap(({ kind, body }) => fieldsOf(body.json.properties?.['spec'] ?? {}, `${kind}.spec`));
  expect(fields).toContain('Site.spec.podCidrAssignments.nodeBlockSizes.ipv4');
  const name = (field: string): string => field.slice(field.lastIndexOf('.') + 1);
  expect(fields.filter((field) => !new RegExp(`\\b${name(field)}\\b`).test(readers))).toEqual([]);
});
