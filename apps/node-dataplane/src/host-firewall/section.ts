import type { Nftables } from '@unbounded/nftables';
import type { Logger } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import type { AgentConfig } from '../agent.config.ts';
import { rateLimited } from '../kernel/table-watch.ts';
import type { NodeEvent, SectionType, VersionedPlan } from '../section.port.ts';
import { createProblemLog } from '../world/problem-log.ts';
import { createIptables, type FilterTableId, type Iptables, nameOf } from './iptables.ts';
import { type Changes, planClosings, planOpenings, type Refusal } from './openings.plan.ts';

/**
 * What belongs to the overlay passes the host's own firewall, and nothing else does: connectivity marks it before the filters, and a rule
 * of ours in each filter table that may refuse it accepts what has the mark. Reported alone, where the operator wants it so.
 */

/** Accept: our rule in the tables that may refuse. Report: a condition that says what they refuse. */
export type HostFirewallMode = AgentConfig['hostFirewall'];

/** Milliseconds. Changes of nf_tables are heard at once; x_tables say nothing. */
const LEGACY_EVERY_MS = 5000;
/** After a failure: most often another program wrote the table between our look and our change. */
const RETRY_MS = 1000;
const EVERY_MS = 60_000;
/** Who changes a table in a loop gets so many repairs, and then one in this time. */
const REPAIRS = { burst: 10, everyMs: 2000 };
/** Of what is kept: whether there was a table that refuses. */
const VERSION = 1;

interface Outcome {
  /** A table may refuse what belongs to the overlay, but for a rule of ours; undefined: it cannot be told. */
  readonly refuses: boolean | undefined;
  readonly problems: readonly Problem[];
  readonly events: readonly NodeEvent[];
}

const ADVICE: Readonly<Record<HostFirewallMode, string>> = {
  Accept: 'behind which our rule must stay',
  Report: '--host-firewall=Accept (chart: node-dataplane.hostFirewall) lets them pass',
};

const blocked = (id: FilterTableId, { chain, why }: Refusal, mode: HostFirewallMode): Problem => ({
  reason: 'HostFirewallBlocks',
  message: `chain ${chain} of ${nameOf(id)} may drop packets of the overlay: ${why}; ${ADVICE[mode]}`,
});

const notManaged = (id: FilterTableId, { message }: Error): Problem => ({
  reason: 'HostFirewallNotManaged',
  message: `${nameOf(id)}: ${message}; what it drops of the overlay stays dropped`,
});

const opened = (id: FilterTableId, { insertions }: Changes): NodeEvent => ({
  type: 'Normal',
  reason: 'HostFirewallOpened',
  action: 'OpenFirewall',
  note: `a rule in ${insertions.map(({ chain }) => chain).join(' and ')} of ${nameOf(id)} accepts what belongs to the overlay`,
});

interface Looked extends Outcome {
  /** Changes of the tables that are there do not go unheard. */
  readonly isHeard: boolean;
  /** A table could not be read or changed. */
  readonly hasFailed: boolean;
}

/** @param mode Report takes away what Accept made */
export const ensureOpenings = async (iptables: Iptables, mode: HostFirewallMode): Promise<Looked> => {
  const ids = await iptables.find();
  const outcomes = ids.map(async (id): Promise<Outcome> => {
    try {
      const table = await iptables.read(id);
      const plan = mode === 'Accept' ? planOpenings(table) : planClosings(table);
      if (plan.removals.length + plan.insertions.length > 0) await iptables.change(id, plan);
      return {
        refuses: plan.refusals.length > 0,
        problems: plan.blocked.map((refusal) => blocked(id, refusal, mode)),
        events: plan.insertions.length > 0 ? [opened(id, plan)] : [],
      };
    } catch (error) {
      return { refuses: undefined, problems: [notManaged(id, error as Error)], events: [] };
    }
  });
  const all = await Promise.all(outcomes);
  return {
    refuses:
      all.some(({ refuses }) => refuses) || (all.every(({ refuses }) => refuses !== undefined) ? false : undefined),
    isHeard: ids.every(({ backend }) => backend === 'nft'),
    hasFailed: all.some(({ refuses }) => refuses === undefined),
    problems: all.flatMap(({ problems }) => problems),
    events: all.flatMap(({ events }) => events),
  };
};

/** Hears of every change of the filter tables of nf_tables. */
const watchFilters = (nft: Pick<Nftables, 'monitor'>, onChange: () => void, logger: Logger): Disposable => {
  const { ask, stop } = rateLimited(onChange, REPAIRS);
  const monitors = (['ip', 'ip6'] as const).map((family) =>
    nft.monitor(family, 'filter', {
      onChange: ask,
      onError: ({ message: error }) => logger.warn({ family, error }, 'cannot watch the filter table of iptables'),
    }),
  );
  return {
    [Symbol.dispose]() {
      for (const monitor of monitors) monitor.close();
      stop();
    },
  };
};

/** Of a table that has our rule, whose marks must be there with the agent's first table. */
const wasMarking = (kept: VersionedPlan | undefined): boolean =>
  kept?.version === VERSION && (kept.plan as { marksPassing?: unknown } | null)?.marksPassing === true;

/** Listed before connectivity: its first table has the marks, if the last one had them. */
export const hostFirewall = (
  { hostFirewall: mode }: Pick<AgentConfig, 'hostFirewall'>,
  openIptables: (nft: Nftables) => Iptables = (nft) => createIptables({ nft }),
): SectionType => ({
  name: 'hostfirewall',
  async open({ nft, boundary, kept, trigger, logger }) {
    let marksPassing = mode === 'Accept' && wasMarking(kept.read());
    boundary.set({ marksPassing });
    const iptables = openIptables(nft);
    const logProblems = createProblemLog(logger);
    const watch = watchFilters(nft, trigger, logger);
    return {
      async pass() {
        const { refuses, isHeard, hasFailed, problems, events } = await ensureOpenings(iptables, mode);
        logProblems(problems);
        const wanted = mode === 'Accept' && (refuses ?? marksPassing);
        if (marksPassing !== wanted) {
          marksPassing = wanted;
          kept.write({ version: VERSION, plan: { marksPassing } });
          boundary.set({ marksPassing });
        }
        const regularMs = isHeard ? EVERY_MS : LEGACY_EVERY_MS;
        return { nextPassMs: hasFailed ? RETRY_MS : regularMs, report: { problems, events } };
      },
      async stop() {
        watch[Symbol.dispose]();
      },
    };
  },
  async cleanUp({ nft, say }) {
    const { problems } = await ensureOpenings(openIptables(nft), 'Report');
    const failures = problems.filter(({ reason }) => reason === 'HostFirewallNotManaged');
    for (const { message } of failures) say(message);
    if (failures.length > 0) throw new Error(failures.map(({ message }) => message).join('; '));
  },
});
