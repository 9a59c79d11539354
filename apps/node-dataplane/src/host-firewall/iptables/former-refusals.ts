import type { FilterTableId } from './iptables.ts';
import type { OpenedChain } from './openings.plan.ts';

/**
 * Chains that refused a moment ago. Whoever reloads a firewall lets everything pass for a second or two and then refuses as before (ufw
 * sets the policy ACCEPT, removes its rules and adds them again): a rule of ours that is taken out meanwhile is missed when it does.
 */

/** Milliseconds for which our rule outlives what it was made for. */
export const KEPT_MS = 60_000;

export interface FormerRefusals {
  /** What a look found. */
  note(id: FilterTableId, refusing: readonly OpenedChain[]): void;
  has(id: FilterTableId, chain: OpenedChain): boolean;
  readonly isEmpty: boolean;
  /** Until the first one counts no more; Infinity: there is none. */
  nextMs(): number;
}

export const createFormerRefusals = (elapsed: () => number): FormerRefusals => {
  /** By table and chain: until when it counts; Infinity: it refuses now. */
  const untilMs = new Map<string, number>();
  const keyOf = ({ family, backend }: FilterTableId, chain: string): string => `${family} ${backend} ${chain}`;
  const ends = (): number[] => [...untilMs.values()].filter((until) => until !== Infinity && until > elapsed());
  return {
    note(id, refusing) {
      const now = new Set(refusing.map((chain) => keyOf(id, chain)));
      for (const [key, until] of untilMs)
        if (key.startsWith(keyOf(id, '')) && until === Infinity && !now.has(key)) untilMs.set(key, elapsed() + KEPT_MS);
      for (const key of now) untilMs.set(key, Infinity);
    },
    has: (id, chain) => (untilMs.get(keyOf(id, chain)) ?? -Infinity) > elapsed(),
    get isEmpty() {
      return ends().length === 0;
    },
    nextMs: () => Math.min(...ends()) - elapsed(),
  };
};
