import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { parseLegacyTable } from './legacy.ts';
import type { Row } from './row.ts';
import { type BaseChain, parseRuleset } from './ruleset.ts';

/** What is asked of the machine. Nothing is changed: a table of iptables that is not there is not asked for, which would make it. */

const MAX_OUTPUT_BYTES = 256 << 20;

const run = (program: string, ...args: readonly string[]): string =>
  execFileSync(program, args, { encoding: 'utf8', stdio: 'pipe', maxBuffer: MAX_OUTPUT_BYTES });

/** Undefined: it has ended, or the folder is no procfs. */
const networkOf = (folder: string, pid: string): string | undefined => {
  try {
    return readlinkSync(join(folder, pid, 'ns/net'));
  } catch {
    return undefined;
  }
};

/** Names of processes, as the kernel cuts them, without those of containers with a network of their own. */
export const processesIn = (root: string): ReadonlySet<string> => {
  const folder = join(root, 'proc');
  const names = new Set<string>();
  const own = networkOf(folder, 'self');
  for (const pid of readdirSync(folder).filter((name) => /^\d+$/.test(name))) {
    if (own !== networkOf(folder, pid)) continue;
    try {
      names.add(readFileSync(join(folder, pid, 'comm'), 'utf8').trim());
    } catch {
      // It has ended.
    }
  }
  return names;
};

export interface Chains {
  readonly chains: readonly BaseChain[];
  /** What could not be read. */
  readonly unknown: readonly Row[];
}

const tryTo = (name: string, read: () => BaseChain[]): Chains => {
  try {
    return { chains: read(), unknown: [] };
  } catch (error) {
    const why = (error as Error).message.trim().split('\n').at(-1)!;
    return { chains: [], unknown: [{ name, state: 'unknown', advice: `what it drops cannot be read: ${why}` }] };
  }
};

const legacyTables = (family: string): string[] => {
  try {
    return readFileSync(`/proc/self/net/${family}_tables_names`, 'utf8').split('\n').filter(Boolean);
  } catch {
    return []; // no x_tables
  }
};

/** Of the network namespace in which this runs. */
export const readChains = (): Chains => {
  const all = [
    tryTo('nftables', () => parseRuleset(run('nft', '-j', 'list', 'ruleset'))),
    ...['ip', 'ip6'].flatMap((family) =>
      legacyTables(family).map((table) =>
        tryTo(`${family}tables-legacy ${table}`, () =>
          parseLegacyTable(family, table, run(`${family}tables-legacy-save`, '-t', table)),
        ),
      ),
    ),
  ];
  return { chains: all.flatMap(({ chains }) => chains), unknown: all.flatMap(({ unknown }) => unknown) };
};

/** Routing tables to which rules lead. */
export const readRuleTables = (): string[] =>
  ['-4', '-6'].flatMap((family) => {
    try {
      const rules = JSON.parse(run('ip', '-j', family, 'rule')) as readonly { readonly table?: string }[];
      return rules.flatMap(({ table }) => table ?? []);
    } catch {
      return []; // a kernel without that family
    }
  });
