import type { Problem } from '@unbounded/topology';
import { createQueue } from '../kernel/in-turn.ts';
import type { Planned } from './egress-planner.ts';
import { type Enforced, type Enforcement, isIdle } from './enforcement.ts';
import type { Observations } from './metrics/observations.ts';
import type { EgressPlan } from './plan/egress-plan.ts';
import type { SteeredAddresses } from './steered-addresses.ts';

/** Passes, and pods that are attached, take turns at the kernel: each finds it as the one before it has left it. */

export type State = Planned & Enforced;

export interface Turns {
  /** As things are known now. Undefined: nothing is known, and nothing was. */
  enforce(): Promise<State | undefined>;
  /**
   * The same where pods alone have come or gone, and no more than that is done if the kernel holds the rest.
   * @param onInForce as of Enforcement: what is undefined or comes later does not count then
   */
  admit(onInForce: () => void): Promise<State | undefined>;
  /**
   * What takes long and nobody waits for: connections of before end, then the plan is kept. Until it is done the tables keep pods' own
   * addresses from leaving: so where there is nothing to do any more, they go last.
   */
  settle(state: State): Promise<readonly Problem[]>;
}

export interface TurnsParts {
  readonly plan: () => Promise<Planned | undefined>;
  readonly enforcement: Enforcement;
  readonly steered: SteeredAddresses;
  readonly observed: Pick<Observations, 'passed' | 'problems'>;
  /** The kernel holds the plan, and no connection is left from before. */
  readonly keep: (plan: EgressPlan) => void;
  readonly onEnforced: (state: State) => void;
}

export const createTurns = ({ plan, enforcement, steered, observed, keep, onEnforced }: TurnsParts): Turns => {
  const inTurn = createQueue();
  let latest: EgressPlan | undefined;
  const planNow = async (): Promise<Planned | undefined> => {
    const known = await plan();
    if (!known) return undefined;
    latest = known.plan;
    steered.begins(known.plan);
    return known;
  };
  const enforceAll = async (known: Planned, onInForce?: () => void): Promise<State> => {
    const enforced = await enforcement.enforce(known, onInForce);
    if (enforced.isInForce) steered.inForce(known.plan);
    observed.passed({ addresses: known.given }, enforced.held);
    const problems = [...known.problems, ...enforced.problems, ...observed.problems()];
    const state = { ...known, ...enforced, problems };
    onEnforced(state);
    return state;
  };
  return {
    enforce: () =>
      inTurn(async () => {
        const known = await planNow();
        return known && enforceAll(known);
      }),
    admit: (onInForce) =>
      inTurn(async () => {
        const known = await planNow();
        if (!known) return undefined;
        if (!(await enforcement.changePods(known.plan))) return enforceAll(known, onInForce);
        steered.inForce(known.plan);
        onInForce();
        return undefined;
      }),
    async settle({ plan: settled, isInForce, staying }) {
      const stuck = await enforcement.settle();
      if (stuck.length > 0 || !isInForce) return stuck;
      keep(settled); // also where pods have come since: the next pass keeps what is of them
      if (!isIdle(settled) || staying.size > 0) return [];
      return inTurn(async () => (settled === latest ? enforcement.tearDown() : []));
    },
  };
};
