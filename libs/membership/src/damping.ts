import { isSpent, type Allowance, FULL_ALLOWANCE, QUIET_MS, spend } from './damping-allowance.ts';

/**
 * What each node stated last, as far as it may change what others read: a node that changes it more often than its allowance permits
 * keeps what was accepted last, until its turn comes. Nodes do not share an allowance. What is known of a node goes with it.
 */
export interface Damper<T> {
  /** Takes what all nodes state now. */
  accept(stated: readonly T[]): Damped<T>;
}

export interface Damped<T> {
  /** What counts of each, in the order given. */
  readonly standing: readonly T[];
  /** Names of nodes that change too often, until they have been quiet for a while. */
  readonly damped: ReadonlySet<string>;
  /** Those of which the last call did not say so. */
  readonly begun: readonly string[];
  /** After so long `accept` comes to another result although nothing changes; undefined: it does not. */
  readonly nextMs: number | undefined;
}

export interface DampingRules<T> {
  /** Another uid is another node, whose first statement stands at once. */
  readonly identityOf: (stated: T) => { readonly name: string; readonly uid: string };
  /** What counts while a change waits: what others than the node write is taken over at once. */
  readonly hold: (accepted: T, stated: T) => T;
  readonly isSame: (a: T, b: T) => boolean;
  /** Whether the node states its key: the first statement that does stands at once. */
  readonly hasKey: (stated: T) => boolean;
  /** Milliseconds on a clock that only goes forward. */
  readonly elapsed: () => number;
}

interface Entry<T> {
  readonly uid: string;
  readonly accepted: T;
  readonly allowance: Allowance;
  readonly isHeld: boolean;
  readonly isDamped: boolean;
  readonly hadKey: boolean;
}

const beginning = <T>(uid: string, accepted: T, hadKey: boolean): Entry<T> => ({
  uid,
  accepted,
  allowance: FULL_ALLOWANCE,
  isHeld: false,
  isDamped: false,
  hadKey,
});

const nextOf = <T>(
  entry: Entry<T>,
  stated: T,
  nowMs: number,
  { hold, isSame, hasKey }: Pick<DampingRules<T>, 'hold' | 'isSame' | 'hasKey'>,
): Entry<T> => {
  const { accepted, allowance, isDamped, hadKey } = entry;
  if (stated === accepted || isSame(accepted, stated) || isSame(hold(accepted, stated), stated)) {
    const isQuiet = nowMs - allowance.dueMs >= QUIET_MS;
    return { ...entry, accepted: stated, isHeld: false, isDamped: isDamped && !isQuiet };
  }
  const isFirstKey = !hadKey && hasKey(stated);
  if (isSpent(allowance, nowMs) && !isFirstKey) return { ...entry, isHeld: true, isDamped: true };
  return {
    ...entry,
    accepted: stated,
    allowance: spend(allowance, nowMs),
    isHeld: false,
    hadKey: hadKey || isFirstKey,
  };
};

const waitMs = <T>({ allowance: { dueMs }, isHeld, isDamped }: Entry<T>, nowMs: number): number => {
  if (isHeld) return dueMs - nowMs;
  return isDamped ? Math.max(dueMs + QUIET_MS - nowMs, 1) : Infinity;
};

export const createDamper = <T>({ identityOf, elapsed, ...rules }: DampingRules<T>): Damper<T> => {
  let entries: ReadonlyMap<string, Entry<T>> = new Map();
  return {
    accept: (stated) => {
      const nowMs = elapsed();
      const next = new Map<string, Entry<T>>();
      const standing = stated.map((one) => {
        const { name, uid } = identityOf(one);
        const before = entries.get(name);
        const entry = before?.uid === uid ? nextOf(before, one, nowMs, rules) : beginning(uid, one, rules.hasKey(one));
        next.set(name, entry);
        return entry.isHeld ? rules.hold(entry.accepted, one) : one;
      });
      const damped = new Set([...next].flatMap(([name, { isDamped }]) => (isDamped ? [name] : [])));
      const begun = [...damped].filter((name) => entries.get(name)?.isDamped !== true);
      entries = next;
      let firstMs = Infinity; // not Math.min(...): a call with 100,000 arguments fails
      for (const entry of next.values()) firstMs = Math.min(firstMs, waitMs(entry, nowMs));
      return { standing, damped, begun, nextMs: Number.isFinite(firstMs) ? firstMs : undefined };
    },
  };
};
