import { parseArgs } from 'node:util';
import { FAMILIES } from '../layout/addresses.ts';
import type { LabLayout, LabNode } from '../layout/layout.ts';
import {
  AGENTS,
  BLOCK_UDP,
  bounds,
  DATAPLANES,
  DEFAULTS,
  flagOf,
  type BlockUdp,
  type LabOptions,
  PROTOCOLS,
  TOPOLOGIES,
  UNDERLAYS,
} from '../layout/options.ts';

/** What a person's words on the command line mean. */

/** The words were wrong; the message says what would be right. Exit status 2. */
export class UsageError extends Error {}

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
  blockUdp: BLOCK_UDP,
  agents: AGENTS,
  underlay: UNDERLAYS,
} as const satisfies Partial<Record<keyof LabOptions, readonly string[]>>;

const oneOf = (option: keyof typeof CHOICES, given: string): string => {
  const known: readonly string[] = CHOICES[option];
  const found = known.find((candidate) => candidate.toLowerCase() === given.toLowerCase());
  if (!found) throw new UsageError(`${flagOf(option)} ${given}: one of ${known.join(', ')} would be right`);
  return found;
};

const bare = (option: string): string => flagOf(option as keyof LabOptions).slice('--'.length);

/** @throws UsageError that names what would be right */
export const blockUdpFrom = ([given = '', ...more]: readonly string[]): BlockUdp => {
  const found = BLOCK_UDP.find((known) => known === given);
  if (!found || more.length > 0)
    throw new UsageError(
      `tools/lab block-udp ${[given, ...more].join(' ')}: one of ${BLOCK_UDP.join(', ')} would be right`,
    );
  return found;
};

/** The words after `up`; numbers are not checked against their bounds. @throws UsageError, or of node:util's parseArgs */
export const optionsFrom = (args: string[]): LabOptions => {
  const names = Object.keys(DEFAULTS) as (keyof LabOptions)[];
  const { values } = parseArgs({
    args,
    options: Object.fromEntries(
      names.map((name) => [bare(name), { type: name === 'fabric' ? ('boolean' as const) : ('string' as const) }]),
    ),
  });
  const options: Record<string, unknown> = { ...DEFAULTS };
  for (const name of names) {
    const given = values[bare(name)];
    if (given === undefined) continue;
    if (name in bounds) options[name] = Number(given);
    else options[name] = name in CHOICES ? oneOf(name as keyof typeof CHOICES, String(given)) : given;
  }
  return options as unknown as LabOptions;
};
