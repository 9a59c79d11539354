import { NFT_TABLE } from '@unbounded/config/ownership';
import type { ChainSpec, Nftables, SetSpec, TableSpec } from '@unbounded/nftables';
import type { Logger } from '@unbounded/telemetry';
import type { FirewallMetrics } from './firewall-metrics.ts';

/**
 * Our one nftables table (family inet), of which every section writes a fragment. The table is replaced as a whole, in one
 * transaction. A fragment that the kernel refuses leaves the former one of its section and those of all others in force.
 */

/** Names of sets, chains and counters are unique in the table: a section's own begin with its name. */
export interface TableFragment {
  readonly sets?: readonly SetSpec[];
  readonly counters?: readonly string[];
  readonly chains: readonly ChainSpec[];
}

/**
 * How a section's part of the table is: as wanted; there, but not as wanted, because the kernel refused the change; missing; or
 * not known, because the kernel did not answer.
 */
export type FirewallState = 'asPlanned' | 'outdated' | 'missing' | 'unknown';

export interface FragmentOutcome {
  readonly state: FirewallState;
  /** Why it is not as wanted. */
  readonly error?: Error;
}

export interface FirewallTable {
  /** Never rejects. The same fragment again repairs what others changed in the table. */
  set(section: string, fragment: TableFragment): Promise<FragmentOutcome>;
  /** The section has no fragment (yet): the others do not wait for it. */
  release(section: string): void;
}

export interface FirewallTableOptions {
  readonly nft: Nftables;
  /**
   * All sections in the order in which their chains stand. The table of a former process is replaced when they have set their
   * fragments: those before one must have been taken, those after it are waited for a moment.
   */
  readonly sections?: readonly string[];
  readonly metrics?: FirewallMetrics;
  readonly logger: Logger;
  /** For how long a table that is in force waits for fragments that nobody has set yet, milliseconds. */
  readonly firstWaitMs?: number;
}

const FIRST_WAIT_MS = 2000;

/** The whole table. */
export const tableOf = (fragments: readonly TableFragment[]): TableSpec => ({
  family: 'inet',
  name: NFT_TABLE,
  counters: fragments.flatMap(({ counters = [] }) => counters),
  sets: fragments.flatMap(({ sets = [] }) => sets),
  chains: fragments.flatMap(({ chains }) => chains),
});

const namesOf = ({ sets = [], counters = [], chains }: TableFragment): string[] => [
  ...[...sets, ...chains].map(({ name }) => name),
  ...counters,
];

/** Resolves when every section has set its fragment or has none, or the time is over. */
const createFirstWait = (sections: readonly string[], limitMs: number) => {
  const missing = new Set(sections);
  const all = Promise.withResolvers<void>();
  return {
    settle(section: string): void {
      missing.delete(section);
      if (missing.size === 0) all.resolve();
    },
    async over(): Promise<void> {
      if (missing.size === 0) return;
      const timer = setTimeout(() => {
        missing.clear();
        all.resolve();
      }, limitMs);
      await all.promise;
      clearTimeout(timer);
    },
  };
};

export const createFirewallTable = (options: FirewallTableOptions): FirewallTable => {
  const { nft, sections = [], metrics, logger, firstWaitMs = FIRST_WAIT_MS } = options;
  const firstWait = createFirstWait(sections, firstWaitMs);
  /** Fragments that the kernel took. */
  let accepted: ReadonlyMap<string, TableFragment> = new Map();
  const released = new Set<string>();
  let turn: Promise<unknown> = Promise.resolve();

  const ordered = (fragments: ReadonlyMap<string, TableFragment>): TableFragment[] =>
    [...new Set([...sections, ...fragments.keys()])].flatMap((name) => fragments.get(name) ?? []);

  const write = async (fragments: ReadonlyMap<string, TableFragment>): Promise<void> => {
    const table = tableOf(ordered(fragments));
    metrics?.observe(await nft.readCounters(table.family, table.name)); // a new table counts from zero
    if (await nft.matches(table)) return;
    await nft.replaceTable(table);
    metrics?.restarted();
    logger.info({ table: table.name }, 'wrote the nftables table');
  };

  const stateAfterFailure = async (section: string): Promise<FirewallState> => {
    try {
      if (!(await nft.hasTable('inet', NFT_TABLE))) return 'missing';
      return accepted.has(section) || accepted.size === 0 ? 'outdated' : 'missing';
    } catch {
      return 'unknown';
    }
  };

  /** What others wrote into the table, or took out of it, harms no section but the one that is refused. */
  const keepAccepted = async (): Promise<void> => {
    if (accepted.size === 0) return;
    await write(accepted).catch((error: unknown) =>
      logger.warn({ error: (error as Error).message }, 'cannot repair the nftables table'),
    );
  };

  /** Else the rules of an earlier section, which a former process wrote, would go with the table. */
  const awaited = (section: string): Error | undefined => {
    const index = sections.indexOf(section);
    const first = sections.slice(0, Math.max(0, index)).find((name) => !accepted.has(name) && !released.has(name));
    return first === undefined ? undefined : new Error(`the rules of section ${first} are not in force yet`);
  };

  const clash = (section: string, fragment: TableFragment): Error | undefined => {
    const taken = new Map([...accepted].flatMap(([name, other]) => namesOf(other).map((one) => [one, name] as const)));
    const twice = namesOf(fragment).find((one) => taken.has(one) && taken.get(one) !== section);
    return twice === undefined ? undefined : new Error(`"${twice}" is a name of section ${taken.get(twice)}`);
  };

  const set = async (section: string, fragment: TableFragment): Promise<FragmentOutcome> => {
    try {
      const refused = awaited(section) ?? clash(section, fragment);
      if (refused) throw refused;
      const candidate = new Map([...accepted, [section, fragment]]);
      await write(candidate);
      accepted = candidate;
      return { state: 'asPlanned' };
    } catch (error) {
      await keepAccepted();
      return { state: await stateAfterFailure(section), error: error as Error };
    }
  };

  return {
    async set(section, fragment) {
      firstWait.settle(section);
      await firstWait.over();
      const outcome = turn.then(() => set(section, fragment));
      turn = outcome;
      return await outcome;
    },
    release(section) {
      if (!accepted.has(section)) released.add(section);
      firstWait.settle(section);
    },
  };
};
