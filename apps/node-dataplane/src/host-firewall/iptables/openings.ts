import type { Problem } from '@unbounded/topology';
import type { NodeEvent } from '../../section.port.ts';
import type { HostFirewallMode } from '../host-firewall.port.ts';
import type { FormerRefusals } from './former-refusals.ts';
import { type FilterTableId, type Iptables, nameOf } from './iptables.ts';
import { type Changes, planClosings, planOpenings, type Refusal } from './openings.plan.ts';

/** Our rules in the filter tables of iptables, as the mode wants them, and what is to say about it. */

interface Outcome {
  /** The table may refuse what belongs to the overlay, but for a rule of ours; undefined: it cannot be told. */
  readonly refuses: boolean | undefined;
  /** It was read, and then could not be changed. */
  readonly isStuck: boolean;
  /** Chains that refuse whatever nobody has accepted, and of these those that refuse the overlay, too. */
  readonly refusing: number;
  readonly blocking: number;
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

const notManaged = (id: FilterTableId, error: unknown): Problem => ({
  reason: 'HostFirewallNotManaged',
  message: `${nameOf(id)}: ${(error as Error).message}; what it drops of the overlay stays dropped`,
});

const opened = (id: FilterTableId, { insertions }: Changes): NodeEvent[] => {
  const chains = insertions.map(({ chain }) => chain).join(' and ');
  if (chains === '') return [];
  const note = `a rule in ${chains} of ${nameOf(id)} accepts what belongs to the overlay`;
  return [{ type: 'Normal', reason: 'HostFirewallOpened', action: 'OpenFirewall', note }];
};

type Former = Pick<FormerRefusals, 'has' | 'note'>;
const NONE_FORMER: Former = { has: () => false, note: () => undefined };

const ensureTable = async (
  { iptables, mode, former }: { readonly iptables: Iptables; readonly mode: HostFirewallMode; readonly former: Former },
  id: FilterTableId,
): Promise<Outcome> => {
  let isStuck = false;
  try {
    const table = await iptables.read(id);
    const plan = mode === 'Accept' ? planOpenings(table, (chain) => former.has(id, chain)) : planClosings(table);
    former.note(
      id,
      plan.refusals.map(({ chain }) => chain),
    );
    isStuck = true;
    if (plan.removals.length + plan.insertions.length > 0) await iptables.change(id, plan);
    return {
      refuses: plan.refusals.length > 0,
      isStuck: false,
      refusing: plan.refusals.length,
      blocking: plan.blocked.length,
      problems: plan.blocked.map((refusal) => blocked(id, refusal, mode)),
      events: opened(id, plan),
    };
  } catch (error) {
    return { refuses: undefined, isStuck, refusing: 0, blocking: 0, problems: [notManaged(id, error)], events: [] };
  }
};

export interface Look extends Outcome {
  readonly tables: readonly FilterTableId[];
}

/**
 * @param mode Report takes away what Accept made
 * @param former what refused at earlier looks, and counts as refusing for a while
 */
export const ensureOpenings = async (
  iptables: Iptables,
  mode: HostFirewallMode,
  former: Former = NONE_FORMER,
): Promise<Look> => {
  const tables = await iptables.find();
  const all = await Promise.all(tables.map((id) => ensureTable({ iptables, mode, former }, id)));
  const isKnown = all.every(({ refuses }) => refuses !== undefined);
  return {
    tables,
    refuses: all.some(({ refuses }) => refuses) || (isKnown ? false : undefined),
    isStuck: all.some(({ isStuck }) => isStuck),
    refusing: all.reduce((sum, { refusing }) => sum + refusing, 0),
    blocking: all.reduce((sum, { blocking }) => sum + blocking, 0),
    problems: all.flatMap(({ problems }) => problems),
    events: all.flatMap(({ events }) => events),
  };
};
