import { expect, test } from 'vitest';
import { validValues } from './valid-values.ts';
import { ofPart, valuesOfText, valueTables } from './values-reference.ts';

test('a value has the comment before it, whatever its depth; a group has a row where it has a comment', () => {
  const text = `# Of all.\nname: a\n# Ports:\n# of the host.\nports:\n  # Of clients.\n  first: 1\n  second: {}\nlist: [{ a: b }]\n`;
  expect(valuesOfText(text, ['part'])).toEqual([
    { name: 'part.name', preset: '"a"', meaning: 'Of all.' },
    { name: 'part.ports', meaning: 'Ports: of the host.' },
    { name: 'part.ports.first', preset: '1', meaning: 'Of clients.' },
    { name: 'part.ports.second', preset: '{}', meaning: '' },
    { name: 'part.list', preset: '[{"a":"b"}]', meaning: '' },
  ]);
});

test('defaults of the umbrella chart count, and what it has besides', () => {
  const own = valuesOfText('enabled: false\nsize: 1\n', ['part']);
  const umbrella = valuesOfText('part:\n  enabled: true\n  more: x\nparty:\n  other: y\n');
  expect(ofPart('part', umbrella, own).map(({ name, preset }) => [name, preset])).toEqual([
    ['part.enabled', 'true'],
    ['part.size', '1'],
    ['part.more', '"x"'],
  ]);
});

test('the chart’s own values are told, without what would break a table', () => {
  const lines = valueTables().split('\n');
  expect(lines).toContain('## node-dataplane');
  expect(lines.filter((line) => line.startsWith('| `node-dataplane.tailnet` | `false` | true, false |'))).toHaveLength(
    1,
  );
  const rows = lines.filter((line) => line.startsWith('| `'));
  expect(rows.length).toBeGreaterThan(200);
  expect(rows.filter((line) => line.replaceAll('\\|', '').split('|').length !== 6)).toEqual([]);
});

test('what is valid is told from the schema, and a value that it does not have is an error', () => {
  const schema = {
    definitions: { port: { type: 'integer', minimum: 1, maximum: 65_535 } },
    properties: {
      part: {
        allOf: [
          {
            properties: {
              port: { $ref: '#/definitions/port' },
              level: { enum: ['info', 'warn'] },
              replicas: { oneOf: [{ type: 'integer', minimum: 1 }, { const: '' }] },
              host: { type: 'string', description: 'A name.' },
              resources: { type: 'object' },
              list: { type: 'array', items: { type: 'string', pattern: '^a', description: 'Flags.' } },
              bare: { type: 'string', pattern: '^a' },
            },
          },
        ],
      },
    },
  };
  const told = ['port', 'level', 'replicas', 'host', 'resources.limits.cpu', 'list'].map((key) =>
    validValues(schema, `part.${key}`),
  );
  expect(told).toEqual(['1 to 65535', 'info, warn', '1 or more; or empty', 'A name', 'as in a Pod', 'a list: Flags']);
  expect(() => validValues(schema, 'part.bare')).toThrow('pattern: ^a: must have a description');
  expect(() => validValues(schema, 'part.other')).toThrow('values.schema.json: part.other: must be in it');
});
