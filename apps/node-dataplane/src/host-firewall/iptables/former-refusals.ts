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
  /** By table and chain: when it was first seen to refuse nothing any more; undefined: it refuses. */
  const endedMs = new Map<string, number | undefined>();
  const keyOf = ({ family, backend }: FilterTableId, chain: string): string => `${family} ${backend} ${chain}`;
  const leftMs = (ended: number): number => ended + KEPT_MS - elapsed();
  const former = () => [...endedMs].filter((entry): entry is [string, number] => entry[1] !== undefined);
  const forget = (): void => {
    for (const [key, ended] of former()) if (leftMs(ended) <= 0) endedMs.delete(key);
  };
  return {
    note(id, refusing) {
      forget();
      const now = new Set(refusing.map((chain) => keyOf(id, chain)));
      for (const [key, ended] of endedMs)
        if (key.startsWith(keyOf(id, '')) && ended === undefined && !now.has(key)) endedMs.set(key, elapsed());
      for (const key of now) endedMs.set(key, undefined);
    },
    has(id, chain) {
      forget();
      return endedMs.has(keyOf(id, chain));
    },
    get isEmpty() {
      forget();
      return former().length === 0;
    },
    nextMs: () => Math.min(...former().map(([, ended]) => Math.max(0, leftMs(ended)))),
  };
};
