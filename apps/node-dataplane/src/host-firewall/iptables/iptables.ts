import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import type { Nftables } from '@unbounded/nftables';
import { type FilterRule, type FilterTable, parseFilterTable } from './iptables-save.codec.ts';
import { type Changes, OPENING } from './openings.plan.ts';

/**
 * The filter tables of iptables on the node. There are up to four: of either family, in nf_tables (iptables-nft) and in x_tables
 * (iptables-legacy), and a packet passes all of them. They are read and written by iptables' own programs, whose rules look like nothing
 * else's; a table that is not there is not asked for, since the question alone would make it.
 */

export type Backend = 'nft' | 'legacy';
type IpFamily = 'ip' | 'ip6';

export interface FilterTableId {
  readonly family: IpFamily;
  readonly backend: Backend;
}

/** For operators. */
export const nameOf = ({ family, backend }: FilterTableId): string =>
  `${family}tables (${backend === 'nft' ? 'nf_tables' : 'legacy'})`;

export interface Iptables {
  /** That the kernel has. */
  find(): Promise<FilterTableId[]>;
  /** @throws Error when the program is missing, or cannot read what the kernel holds */
  read(id: FilterTableId): Promise<FilterTable>;
  /** All or nothing. @throws Error when the kernel holds something else by now */
  change(id: FilterTableId, changes: Changes): Promise<void>;
}

export interface IptablesOptions {
  readonly nft: Pick<Nftables, 'hasTable' | 'listNames'>;
  /** Before a program and its arguments: where it runs. */
  readonly prefix?: readonly string[];
  /** Names of the tables that x_tables has for a family, a line each; '' without x_tables. */
  readonly legacyTables?: (family: IpFamily) => string;
}

const TIMEOUT_MS = 20_000;
/** A node of kube-proxy's iptables mode with 10,000 Services has about 10 MB, most of it in other tables. */
const MAX_OUTPUT_BYTES = 64 << 20;
/** For the lock that all programs of iptables share. */
const LOCK_SECONDS = 5;

const IDS: readonly FilterTableId[] = (['ip', 'ip6'] as const).flatMap((family) =>
  (['nft', 'legacy'] as const).map((backend) => ({ family, backend })),
);

const quote = (word: string): string => (/[\s"\\]/.test(word) ? `"${word.replaceAll(/["\\]/g, '\\$&')}"` : word);

const line = (...words: readonly (string | number | FilterRule)[]): string =>
  words
    .flat()
    .map((word) => quote(String(word)))
    .join(' ');

/** What `iptables-restore --noflush` takes. */
const restoreText = ({ removals, insertions }: Changes): string =>
  [
    '*filter',
    ...removals.map(({ chain, rule }) => line('-D', chain, rule)),
    ...insertions.map(({ chain, position }) => line('-I', chain, position, OPENING)),
    'COMMIT',
    '',
  ].join('\n');

const firstLine = (text: string): string => text.trim().split('\n')[0]!.slice(0, 300);

/** Administrators' programs are in none of the folders that a service without a PATH looks into. */
const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: [process.env['PATH'], '/usr/sbin', '/sbin'].filter(Boolean).join(':'),
  LC_ALL: 'C',
});

const run = (argv: readonly string[], input = ''): Promise<string> =>
  new Promise((resolve, reject) => {
    const [program, ...args] = argv as [string, ...string[]];
    const options = { timeout: TIMEOUT_MS, maxBuffer: MAX_OUTPUT_BYTES, env: environment() };
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      if (!error) resolve(stdout);
      else if (error.code === 'ENOENT') reject(new Error(`${program} is not installed`, { cause: error }));
      else reject(new Error(`${program}: ${firstLine(stderr) || error.message}`, { cause: error }));
    });
    child.stdin?.on('error', () => undefined); // it ended before it read: its exit code says why
    child.stdin?.end(input);
  });

const readLegacyTables = (family: IpFamily): string => {
  const file = `/proc/self/net/${family}_tables_names`;
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
};

export const createIptables = ({ nft, prefix = [], legacyTables = readLegacyTables }: IptablesOptions): Iptables => {
  const program = ({ family, backend }: FilterTableId, action: 'save' | 'restore'): string[] => [
    ...prefix,
    `${family}tables-${backend}-${action}`,
  ];
  const isThere = async ({ family, backend }: FilterTableId): Promise<boolean> =>
    backend === 'nft' ? nft.hasTable(family, 'filter') : legacyTables(family).split('\n').includes('filter');
  return {
    async find() {
      const there = await Promise.all(IDS.map(isThere));
      return IDS.filter((_, index) => there[index]);
    },
    async read(id) {
      // iptables makes no sets, and prints a rule that looks into one as if it took every packet.
      if (id.backend === 'nft' && (await nft.listNames(id.family, 'filter'))?.sets.length)
        throw new Error(`${nameOf(id)} has sets in its filter table, so rules that iptables does not know`);
      const table = parseFilterTable(await run([...program(id, 'save'), '-t', 'filter']));
      if (!table) throw new Error(`${nameOf(id)} has chains or rules in its filter table that iptables does not know`);
      return table;
    },
    async change(id, changes) {
      await run([...program(id, 'restore'), '--noflush', '-w', String(LOCK_SECONDS)], restoreText(changes));
    },
  };
};
