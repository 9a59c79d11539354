import type { Nftables } from '@unbounded/nftables';
import type { Logger } from '@unbounded/telemetry';
import { rateLimited } from '../kernel/table-watch.ts';
import type { NodeEvent, SectionType, VersionedPlan } from '../section.port.ts';
import { createProblemLog } from '../world/problem-log.ts';
import { createIptables, type FilterTableId, type Iptables } from './iptables.ts';
import { ensureOpenings, type HostFirewallMode, type Look } from './openings.ts';

/**
 * What belongs to the overlay passes the host's own firewall, and nothing else does: connectivity marks it before the filters, and a rule
 * of ours in each filter table that may refuse it accepts what has the mark. Reported alone, where the operator wants it so.
 */

/** Milliseconds. Changes of nf_tables are heard; x_tables say nothing, nor does a first table of theirs. */
const EVERY_MS = 5000;
const [HEARD_MS, UNHEARD_MS] = [60_000, EVERY_MS];
/** After a failure, and twice as long after each further one: most often another program wrote the table between our look and our change. */
const RETRY = { firstMs: 1000, longestMs: 60_000 } as const;
/** Who changes a table in a loop gets so many looks, and then one in this time. */
const REPAIRS = { burst: 30, everyMs: 1000 };
/** Milliseconds: a firewall that comes up writes its rules in many transactions, and each is told. */
const COLLECT_MS = 20;
/** Of what is kept: whether there was a table that refuses. */
const VERSION = 1;

/** Hears of every change of the filter tables of nf_tables. */
const watchFilters = (nft: Pick<Nftables, 'monitor'>, onChange: () => void, logger: Logger): Disposable => {
  const { ask, stop } = rateLimited(onChange, REPAIRS);
  let timer: NodeJS.Timeout | undefined;
  const collect = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined;
      ask();
    }, COLLECT_MS);
  };
  const monitors = (['ip', 'ip6'] as const).map((family) =>
    nft.monitor(family, 'filter', {
      onChange: collect,
      onError: ({ message: error }) => logger.warn({ family, error }, 'cannot watch the filter table of iptables'),
    }),
  );
  return {
    [Symbol.dispose]() {
      for (const monitor of monitors) monitor.close();
      clearTimeout(timer);
      stop();
    },
  };
};

/** Of a table that has our rule, whose marks must be there with the agent's first table. */
const wasMarking = (kept: VersionedPlan | undefined): boolean =>
  kept?.version === VERSION && (kept.plan as { marksPassing?: unknown } | null)?.marksPassing === true;

/** When the tables are to be looked at again: at rest most passes ask only which there are. */
const createSchedule = (elapsed: () => number) => {
  let dueMs = -Infinity;
  let failures = 0;
  let known = '';
  let asked = 0;
  return {
    isDue: (tables: readonly FilterTableId[]): boolean => elapsed() >= dueMs || JSON.stringify(tables) !== known,
    /** Also while somebody looks: what is asked for then is not seen. */
    ask(): void {
      asked += 1;
      dueMs = -Infinity;
    },
    asked: () => asked,
    /** @param before what `asked` said when the look began */
    looked({ tables, refuses }: Look, before: number): void {
      known = JSON.stringify(tables);
      failures = refuses === undefined ? failures + 1 : 0;
      const isHeard = tables.every(({ backend }) => backend === 'nft');
      const retryMs = Math.min(RETRY.longestMs, RETRY.firstMs * 2 ** (failures - 1));
      if (asked === before) dueMs = elapsed() + (refuses === undefined ? retryMs : isHeard ? HEARD_MS : UNHEARD_MS);
    },
    nextMs: (): number => Math.max(0, Math.min(EVERY_MS, dueMs - elapsed())),
  };
};

/** Listed before connectivity: its first table has the marks, if the last one had them. */
export const hostFirewall = (
  { hostFirewall: mode }: { readonly hostFirewall: HostFirewallMode },
  openIptables: (nft: Nftables) => Iptables = (nft) => createIptables({ nft }),
  elapsed = (): number => performance.now(),
): SectionType => ({
  name: 'hostfirewall',
  async open({ nft, boundary, kept, trigger, logger, metrics }) {
    let marksPassing = mode === 'Accept' && wasMarking(kept.read());
    boundary.set({ marksPassing });
    const iptables = openIptables(nft);
    const chains = metrics.gauge({
      name: 'unbounded_host_firewall_chains',
      help: 'Chains of iptables that refuse whatever nobody has accepted: those that let the overlay pass, and those that do not.',
      labels: ['overlay'],
    });
    const schedule = createSchedule(elapsed);
    const logProblems = createProblemLog(logger);
    let last: Pick<Look, 'problems'> = { problems: [] };
    const onChange = (): void => {
      schedule.ask();
      trigger();
    };
    const watch = watchFilters(nft, onChange, logger);

    const look = async (): Promise<readonly NodeEvent[]> => {
      const before = schedule.asked();
      const seen = await ensureOpenings(iptables, mode);
      last = seen;
      chains.set({ overlay: 'accepted' }, seen.refusing - seen.blocking);
      chains.set({ overlay: 'refused' }, seen.blocking);
      schedule.looked(seen, before);
      logProblems(seen.problems);
      const wanted = mode === 'Accept' && (seen.refuses ?? marksPassing);
      if (marksPassing !== wanted) {
        marksPassing = wanted;
        kept.write({ version: VERSION, plan: { marksPassing } });
        boundary.set({ marksPassing });
      }
      return seen.events;
    };
    return {
      async pass() {
        const events = schedule.isDue(await iptables.find()) ? await look() : [];
        return { nextPassMs: schedule.nextMs(), report: { problems: last.problems, events } };
      },
      async stop() {
        watch[Symbol.dispose]();
      },
    };
  },
  async cleanUp({ nft, say }) {
    // A table that cannot be read has no rule of ours: it could not be read before either.
    const { problems, isStuck } = await ensureOpenings(openIptables(nft), 'Report');
    const failures = problems.filter(({ reason }) => reason === 'HostFirewallNotManaged').map(({ message }) => message);
    for (const message of failures) say(message);
    if (isStuck) throw new Error(failures.join('; '));
  },
});
