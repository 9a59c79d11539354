import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMap, isScalar, parse, parseDocument, type YAMLMap } from 'yaml';
import { root } from '@unbounded/testing/tree';
import { type Root, validValues } from './valid-values.ts';

/** The tables of docs/values.md: every value of the chart with its default, what is valid, and what the comment beside it says. */

export interface Value {
  readonly name: string;
  /** As JSON; none of a group of values. */
  readonly preset?: string;
  readonly meaning: string;
}

const chart = join(root, 'deploy/chart');
const read = (...path: string[]): string => readFileSync(join(chart, ...path), 'utf8');
/** Lines of a comment as one. */
const sentence = (comment: string | null | undefined): string => (comment ?? '').replaceAll(/\s+/g, ' ').trim();

/** Comments stand before the key that they are about; the library gives that of the first key to the map. */
const valuesOf = (map: YAMLMap, above: readonly string[], first: string): Value[] =>
  map.items.flatMap(({ key, value }, index) => {
    if (!isScalar(key)) throw new Error(`${above.join('.')}: ${String(key)}: must be a text as key`);
    const name = [...above, String(key.value)].join('.');
    const meaning = sentence(key.commentBefore) || (index === 0 ? first : '');
    if (!isMap(value) || value.items.length === 0)
      return [{ name, preset: JSON.stringify(isScalar(value) ? value.value : parse(String(value))), meaning }];
    return [
      ...(meaning === '' ? [] : [{ name, meaning }]),
      ...valuesOf(value, [...above, String(key.value)], sentence(value.commentBefore)),
    ];
  });

/** The values of a file, in its order. */
export const valuesOfText = (text: string, above: readonly string[] = []): Value[] => {
  const { contents, commentBefore } = parseDocument(text);
  return isMap(contents) ? valuesOf(contents, above, sentence(contents.commentBefore ?? commentBefore)) : [];
};

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '\\<');
const row = (schema: Root, { name, preset, meaning }: Value): string => {
  // A group says nothing that its values do not say.
  const [shown, valid] = preset === undefined ? ['', ''] : [`\`${cell(preset)}\``, cell(validValues(schema, name))];
  return `| \`${name}\` | ${shown} | ${valid} | ${cell(meaning)} |`;
};
const table = (schema: Root, values: readonly Value[]): string =>
  ['| value | default | valid | meaning |', '|---|---|---|---|', ...values.map((value) => row(schema, value))].join(
    '\n',
  );

/** Values of a part: those of its chart, but where the umbrella chart says another default, or has one more, that counts. */
export const ofPart = (name: string, umbrella: readonly Value[], own: readonly Value[]): Value[] => {
  const over = new Map(
    umbrella.filter((value) => value.name.startsWith(`${name}.`)).map((value) => [value.name, value]),
  );
  const known = new Set(own.map((value) => value.name));
  const kept = own.map((value) => ({ ...value, preset: over.get(value.name)?.preset ?? value.preset }) as Value);
  return [...kept, ...[...over.values()].filter((value) => !known.has(value.name))];
};

export const valueTables = (): string => {
  const umbrella = valuesOfText(read('values.yaml'));
  const schema = JSON.parse(read('values.schema.json')) as Root;
  const parts = Object.keys(parse(read('values.yaml')) as object).filter((name) => name !== 'global');
  const sections = parts.map((name) => {
    const { description } = parse(read('charts', name, 'Chart.yaml')) as { description: string };
    const remark = umbrella.find((value) => value.name === name)?.meaning ?? '';
    const values = ofPart(name, umbrella, valuesOfText(read('charts', name, 'values.yaml'), [name]));
    return [`## ${name}`, '', [`${description}.`, remark].join(' ').trim(), '', table(schema, values)].join('\n');
  });
  const all = umbrella.filter((value) => value.name.startsWith('global.'));
  return [['## global', '', 'What all programs share.', '', table(schema, all)].join('\n'), ...sections].join('\n\n');
};
