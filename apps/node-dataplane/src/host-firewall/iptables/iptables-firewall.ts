import type { Nftables } from '@unbounded/nftables';
import type { Logger } from '@unbounded/telemetry';
import type { SectionContext, VersionedPlan } from '../../section.port.ts';
import type { HostFirewall, HostFirewallMode } from '../host-firewall.port.ts';
import { collected, createSchedule, EVERY_MS } from '../schedule.ts';
import { createFormerRefusals } from './former-refusals.ts';
import type { Iptables } from './iptables.ts';
import { ensureOpenings, type Look } from './openings.ts';

/**
 * Filter tables of iptables: connectivity marks what belongs to the overlay before the filters, and a rule of ours in each table that may
 * refuse it accepts what has the mark.
 */

/** Milliseconds. Changes of nf_tables are heard; x_tables say nothing, nor does a first table of theirs. */
const [HEARD_MS, UNHEARD_MS] = [60_000, EVERY_MS];
/** Of what is kept: whether there was a table that refuses. */
const VERSION = 1;

/** Hears of every change of the filter tables of nf_tables. */
const watchFilters = (nft: Pick<Nftables, 'monitor'>, onChange: () => void, logger: Logger): Disposable => {
  const changes = collected(onChange);
  const monitors = (['ip', 'ip6'] as const).map((family) =>
    nft.monitor(family, 'filter', {
      onChange: changes.hear,
      onError: ({ message: error }) => logger.warn({ family, error }, 'cannot watch the filter table of iptables'),
    }),
  );
  return {
    [Symbol.dispose]() {
      for (const monitor of monitors) monitor.close();
      changes.stop();
    },
  };
};

/** Of a table that has our rule, whose marks must be there with the agent's first table. */
const wasMarking = (kept: VersionedPlan | undefined): boolean =>
  kept?.version === VERSION && (kept.plan as { marksPassing?: unknown } | null)?.marksPassing === true;

export type IptablesContext = Pick<SectionContext, 'nft' | 'boundary' | 'kept' | 'trigger' | 'logger'>;

const NOTHING: Pick<Look, 'problems' | 'refusing' | 'blocking'> = { problems: [], refusing: 0, blocking: 0 };

/** Its marks are in the first table of whatever is opened after it, if they were in the last one. */
export const openIptablesFirewall = (
  { nft, boundary, kept, trigger, logger }: IptablesContext,
  iptables: Iptables,
  { mode, elapsed }: { readonly mode: HostFirewallMode; readonly elapsed: () => number },
): HostFirewall => {
  let marksPassing = mode === 'Accept' && wasMarking(kept.read());
  boundary.set({ marksPassing });
  const schedule = createSchedule(elapsed);
  const former = createFormerRefusals(elapsed);
  let last = NOTHING;
  const onChange = (): void => {
    schedule.ask();
    trigger();
  };
  const watch = watchFilters(nft, onChange, logger);

  const look = async (): Promise<Look> => {
    const before = schedule.asked();
    const seen = await ensureOpenings(iptables, mode, mode === 'Accept' ? former : undefined);
    last = seen;
    const isHeard = seen.tables.every(({ backend }) => backend === 'nft');
    const what = JSON.stringify(seen.tables);
    const nextMs = Math.min(isHeard ? HEARD_MS : UNHEARD_MS, former.nextMs());
    schedule.looked({ what, failed: seen.refuses === undefined, nextMs }, before);
    const wanted = mode === 'Accept' && ((seen.refuses ?? marksPassing) || !former.isEmpty);
    if (marksPassing !== wanted) {
      marksPassing = wanted;
      kept.write({ version: VERSION, plan: { marksPassing } });
      boundary.set({ marksPassing });
    }
    return seen;
  };
  return {
    async pass() {
      const events = schedule.isDue(JSON.stringify(await iptables.find())) ? (await look()).events : [];
      const { problems, refusing, blocking } = last;
      return { nextPassMs: schedule.nextMs(), problems, events, refusing, blocking };
    },
    stop: () => watch[Symbol.dispose](),
  };
};
