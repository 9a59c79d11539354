import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { chartFolder } from './chart.ts';
import { merged, only, parts } from './chart-leaves.ts';

/** Values by which the chart installs some of its programs. */

/** All but monitoring: kinds of its objects are not the API server's own: its own spec has them. */
export const apps = parts.filter((name) => name !== 'monitoring');
const enabled = (names: readonly string[] = []): object =>
  Object.fromEntries(names.map((name) => [name, { enabled: true }]));
/** A file of values of the chart, with all apps. */
export const valuesFile = (name: string): object =>
  merged(parse(readFileSync(join(chartFolder, name), 'utf8')) as object, enabled(apps));

/** Programs that others cannot do without. */
export const NEEDED: Readonly<Record<string, readonly string[]>> = {
  relay: ['gateway-health'],
  tailnet: ['tailnet-registrar'],
};
/** The program, with those that it needs. */
export const alone = (name: string): object => merged(only(name), enabled(NEEDED[name]));
/** Without the program and those that need it. */
export const without = (name: string): object => {
  const isUser = (part: string): boolean => NEEDED[part]?.includes(name) ?? false;
  return Object.fromEntries(apps.map((part) => [part, { enabled: part !== name && !isUser(part) }]));
};
