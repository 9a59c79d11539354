import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { parse, stringify } from 'yaml';

import { chartFolder, renderText } from './chart.ts';

/**
 * The chart with many sets of values, by few starts of helm: a chart of charts, each of which is the umbrella with its templates
 * and some of its parts. The schema is not there, since helm would need as long for it as for all the rest.
 */

type Values = Readonly<Record<string, { readonly enabled?: boolean } | undefined>>;
interface Description {
  readonly dependencies: readonly { readonly name: string }[];
}

export interface Variant {
  readonly values: object;
  /** Parts that are there, whether the values enable them or not. */
  readonly parts: readonly string[];
}

/** Helm's time for the conditions of a chart's charts grows with the square of their number. */
const AT_A_TIME = { conditional: 8, unconditional: 60 } as const;
const OF_UMBRELLA = ['templates', 'values.yaml'];
const description = parse(readFileSync(join(chartFolder, 'Chart.yaml'), 'utf8')) as Description;

export const enabledParts = (values: object): string[] =>
  description.dependencies.map(({ name }) => name).filter((name) => (values as Values)[name]?.enabled);

const nameOf = (index: number): string => `variant-${index}`;

const writeVariant = (folder: string, name: string, { parts }: Variant): void => {
  const dependencies = description.dependencies.filter((part) => parts.includes(part.name));
  mkdirSync(join(folder, 'charts'), { recursive: true });
  writeFileSync(join(folder, 'Chart.yaml'), stringify({ ...description, name, dependencies }));
  for (const file of [...OF_UMBRELLA, ...parts.map((part) => `charts/${part}`)])
    symlinkSync(join(chartFolder, file), join(folder, file));
};

const SOURCE = /^# Source: all\/charts\/(variant-\d+)\//m;
/** The text of each variant, its documents in the order of helm. */
const byVariant = (text: string): ReadonlyMap<string, string> => {
  const texts = new Map<string, string>();
  for (const document of text.split(/^---$/m)) {
    const name = SOURCE.exec(document)?.[1];
    if (name !== undefined)
      texts.set(name, `${texts.get(name) ?? ''}---${document.replace(SOURCE, '# Source: unbounded/')}`);
  }
  return texts;
};

type Conditions = keyof typeof AT_A_TIME;
/** Conditions are looked at in charts alone that the chart names. A variant has them that has parts which are not enabled. */
const conditionsOf = ({ values, parts }: Variant): Conditions => {
  const enabled = enabledParts(values);
  return parts.every((part) => enabled.includes(part)) ? 'unconditional' : 'conditional';
};

const renderFew = (variants: readonly Variant[], conditions: Conditions): string[] => {
  const folder = mkdtempSync(join(tmpdir(), 'unbounded-variants-'));
  try {
    const version = '0.1.0';
    const named = variants.map((_, index) => ({ name: nameOf(index), version }));
    const dependencies = conditions === 'conditional' ? named : undefined; // an empty list would be as slow as a full one
    writeFileSync(join(folder, 'Chart.yaml'), stringify({ apiVersion: 'v2', name: 'all', version, dependencies }));
    for (const [index, variant] of variants.entries())
      writeVariant(join(folder, 'charts', nameOf(index)), nameOf(index), variant);
    const values = Object.fromEntries(variants.map((variant, index) => [nameOf(index), variant.values]));
    const texts = byVariant(renderText({ values }, folder));
    return variants.map((_, index) => texts.get(nameOf(index)) ?? '');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** What helm makes of each variant: the same text for the same objects. @throws Error with helm's message of what a template refuses */
export const renderVariants = (variants: readonly Variant[]): ReadonlyMap<Variant, string> => {
  const texts = new Map<Variant, string>();
  for (const [conditions, count] of Object.entries(AT_A_TIME) as [Conditions, number][]) {
    const those = variants.filter((variant) => conditionsOf(variant) === conditions);
    for (let begin = 0; begin < those.length; begin += count) {
      const few = those.slice(begin, begin + count);
      for (const [index, text] of renderFew(few, conditions).entries()) texts.set(few[index]!, text);
    }
  }
  return texts;
};
