import { parseArgs } from 'node:util';
import { FAMILIES } from '../layout/addresses.ts';
import type { LabLayout, LabNode } from '../layout/layout.ts';
import {
  AGENTS,
  bounds,
  DATAPLANES,
  DEFAULTS,
  flagOf,
  type LabOptions,
  PROTOCOLS,
  TOPOLOGIES,
  UNDERLAYS,
} from '../layout/options.ts';
import { FEATURE_CHOICES } from '../features/options.ts';
import { UsageError } from '../layout/usage-error.ts';

/** What a person's words on the command line mean. */

/** @throws UsageError that names the nodes there are */
export const nodeNamed = (layout: LabLayout, name: string | undefined): LabNode => {
  const node = layout.nodes.find((candidate) => candidate.name === name);
  if (node) return node;
  const known = layout.nodes.map((candidate) => candidate.name).join(', ');
  throw new UsageError(name === undefined ? `which node? There are ${known}` : `no node ${name}: there are ${known}`);
};

/** Options that are one of some words. */
export const CHOICES = {
  protocol: PROTOCOLS,
  between: PROTOCOLS,
  topology: TOPOLOGIES,
  ip: Object.keys(FAMILIES),
  dataplane: DATAPLANES,
  ...FEATURE_CHOICES,
  agents: AGENTS,
  underlay: UNDERLAYS,
} as const satisfies Partial<Record<keyof LabOptions, readonly string[]>>;

const oneOf = (option: keyof typeof CHOICES, given: string): string => {
  const known: readonly string[] = CHOICES[option];
  const found = known.find((candidate) => candidate.toLowerCase() === given.toLowerCase());
  if (!found) throw new UsageError(`${flagOf(option)} ${given}: must be one of ${known.join(', ')}`);
  return found;
};

const flagName = (option: string): string => flagOf(option as keyof LabOptions).slice('--'.length);

/** The words after `up`; numbers are not checked against their bounds. @throws UsageError, or of node:util's parseArgs */
export const optionsFrom = (args: string[]): LabOptions => {
  const names = Object.keys(DEFAULTS) as (keyof LabOptions)[];
  const { values } = parseArgs({
    args,
    options: Object.fromEntries(
      names.map((name) => [
        flagName(name),
        { type: typeof DEFAULTS[name] === 'boolean' ? ('boolean' as const) : ('string' as const) },
      ]),
    ),
  });
  const options: Record<string, unknown> = { ...DEFAULTS };
  for (const name of names) {
    const given = values[flagName(name)];
    if (given === undefined) continue;
    if (name in bounds) options[name] = Number(given);
    else options[name] = name in CHOICES ? oneOf(name as keyof typeof CHOICES, String(given)) : given;
  }
  return options as unknown as LabOptions;
};
