import {
  type ChangedWays,
  changedWays,
  type NodePlan,
  openWays,
  planTransitions,
  type Transition,
} from '@unbounded/topology';

/** The clock of the steps from plan to plan. Each change has its own: one that begins beside another neither ends nor delays it. */

/** The other ends hear of a change within a second or two; then they take packets the new way. */
const RECEIVE_MS = 4000;
/** Ends that are late still send the old way. */
const SEND_MS = 20_000;
/** Changes that follow one another so closely are one, however many: what each costs is bounded. */
const ONE_MS = 1000;

interface Change extends Omit<Transition, 'step'> {
  readonly sinceMs: number;
}

export interface Transitions {
  /** What the kernel is to hold now. */
  effective(): NodePlan | undefined;
  /** Milliseconds until that is another by the clock alone; undefined: it stays. */
  nextStepMs(): number | undefined;
  to(next: NodePlan): void;
}

/** @param now milliseconds on a clock that only goes forward */
export const createTransitions = (now: () => number): Transitions => {
  let target: NodePlan | undefined;
  /** The latest first. */
  let changes: readonly Change[] = [];
  /** The plan of a step is made once: passes and reports read it over and over. */
  let made: { readonly from: readonly unknown[]; readonly plan: NodePlan } | undefined;
  const elapsedMs = ({ sinceMs }: Change): number => now() - sinceMs;
  const underWay = (): readonly Change[] => changes.filter((change) => elapsedMs(change) < RECEIVE_MS + SEND_MS);
  const effective = (): NodePlan | undefined => {
    if (!target) return undefined;
    const steps = underWay().map((change): Transition => {
      return { ...change, step: elapsedMs(change) < RECEIVE_MS ? 'receive' : 'send' };
    });
    const from = [target, ...steps.flatMap(({ before, step }) => [before, step])];
    if (made?.from.length !== from.length || made.from.some((one, index) => one !== from[index]))
      made = { from, plan: planTransitions(target, steps) };
    return made.plan;
  };
  /** It begins with what is sent at the moment. */
  const begin = (ways: ChangedWays, before: NodePlan, left: NodePlan): void => {
    const [latest, ...others] = changes;
    changes =
      latest !== undefined && elapsedMs(latest) < ONE_MS
        ? [
            {
              before,
              left: [left, ...latest.left],
              prefixes: latest.prefixes.union(ways.prefixes),
              members: latest.members.union(ways.members),
              sinceMs: latest.sinceMs,
            },
            ...others,
          ]
        : [{ before, left: [left], ...ways, sinceMs: now() }, ...changes];
  };
  return {
    effective,
    nextStepMs() {
      const waits = underWay().map((change) => {
        const elapsed = elapsedMs(change);
        return (elapsed < RECEIVE_MS ? RECEIVE_MS : RECEIVE_MS + SEND_MS) - elapsed;
      });
      return waits.length === 0 ? undefined : Math.min(...waits);
    },
    to(next) {
      const current = effective();
      // What is encrypted, or gone, from now on is part of no change, also when it is open again.
      changes = openWays(underWay(), next);
      // Plans that send the same way as the one we are on the way to change nothing about the steps there.
      const ways = target && changedWays(target, next, current);
      if (current && target && ways && ways.prefixes.size > 0) begin(ways, current, target);
      target = next;
    },
  };
};
