import { DEVICES } from '@unbounded/config/ownership';
import type { Problem } from '@unbounded/topology';
import type { SectionContext } from '../section.port.ts';
import { ensureAddresses } from './addresses.ts';
import type { Claims } from './claims.ts';
import type { Planned } from './egress-planner.ts';
import { changeFollowed, type Connections } from './kernel/connections.ts';
import type { Fence } from './fence.ts';
import { createEgressKernel } from './kernel/egress-kernel.ts';
import { removeTraces } from './kernel/traces.ts';
import type { RuleTraffic } from './metrics/rule-traffic.ts';
import { countedRoutes } from './plan/counted-routes.plan.ts';
import type { EgressPlan } from './plan/egress-plan.ts';

/** A plan in force in the kernel, and gone without a trace when there is nothing to do. */

export interface Enforced {
  readonly isInForce: boolean;
  readonly held: ReadonlySet<string>;
  /** Addresses that the node is to have no more, and that a device has still. */
  readonly staying: ReadonlySet<string>;
  readonly problems: readonly Problem[];
}

type Enforceable = Pick<Planned, 'plan' | 'assigned' | 'begunMs'>;

export interface Enforcement {
  /**
   * Connections of before have not ended behind it: their packets are dropped.
   * @param onInForce packets go as the plan says from now on
   */
  enforce(planned: Enforceable, onInForce?: () => void): Promise<Enforced>;
  /** Where pods alone have come or gone since the plan that is in force. @returns false: it is more than that: `enforce` it */
  changePods(plan: EgressPlan): Promise<boolean>;
  /** Ends connections from before what is in force. @returns why some are left */
  settle(): Promise<readonly Problem[]>;
  /** Nothing is to be done any more. @returns why traces are left */
  tearDown(): Promise<readonly Problem[]>;
}

export const isIdle = ({ steered, translated, addresses }: EgressPlan): boolean =>
  steered.length + translated.length + addresses.length === 0;

const NOTHING: ReadonlySet<string> = new Set();

/** By what the kernel said. */
const notRenewed = (refused: ReadonlyMap<string, Error>): Problem[] =>
  [...Map.groupBy(refused, ([, { message }]) => message)].map(([message, [[first] = [''], ...others]]) => ({
    reason: 'EgressAddressFailed',
    message: `egress address ${first}${others.length > 0 ? ` and ${others.length} more` : ''}: cannot renew the right to use it (${message}): nothing leaves with it here`,
  }));

const connectionsStay = ({ message }: Error): Problem => ({
  reason: 'EgressConnectionsStay',
  message: `connections from before a rule cannot be ended (${message}): their packets are dropped, and no new one takes their ports until they expire; the agent tries again`,
});

const tracesStay = ({ message }: Error): Problem => ({
  reason: 'EgressFailed',
  message: `egress addresses: nothing is to be done any more, and what was done cannot be taken away (${message}): the agent tries again`,
});

type Context = Pick<SectionContext, 'net' | 'nft' | 'table' | 'boundary'>;

export interface EnforcementParts {
  readonly fence: Fence;
  readonly connections: Connections;
  readonly claims: Pick<Claims, 'stateOf' | 'taken' | 'released'>;
  readonly traffic: RuleTraffic;
  /** An agent before this one has put something into the kernel. */
  readonly wasActive: boolean;
  /** Addresses that the node had. */
  readonly former: Iterable<string>;
}

export const createEnforcement = (context: Context, parts: EnforcementParts): Enforcement => {
  const { net, table, boundary } = context;
  const { fence, connections, claims, traffic } = parts;
  const kernel = createEgressKernel({ net, table, counts: traffic });
  let isActive = parts.wasActive;
  let had: ReadonlySet<string> = new Set(parts.former);
  let announced = NOTHING;
  let isFirst = true;
  return {
    async enforce({ plan, assigned, begunMs }, onInForce) {
      traffic.planned(countedRoutes(plan));
      if (isIdle(plan) && !isActive) return { isInForce: true, held: NOTHING, staying: NOTHING, problems: [] };
      isActive = true;
      const wanted = new Set(plan.addresses.map(({ address }) => address));
      // What an agent before this one held may be known by the slices alone.
      const given = [...(isFirst ? had.union(assigned) : had)].filter((address) => !wanted.has(address));
      for (const address of given) claims.released(address);
      await fence.release(given);
      isFirst = false;
      boundary.set({ devices: [DEVICES.egress] });
      const outcome = await changeFollowed(
        connections,
        plan,
        () => kernel.apply(plan),
        ({ isInForce }) => isInForce,
      );
      if (outcome.isInForce) onInForce?.();
      const { held, staying, devices, taken, problems } = await ensureAddresses(
        net,
        plan.addresses,
        had.union(assigned),
        claims,
      );
      had = held.union(staying);
      const refused = await fence.hold(held, begunMs);
      // Behind the fence: what the announcement attracts may pass. An agent before this one may have ended before it announced those of its own.
      for (const [address, link] of devices)
        if (taken.has(address) || !announced.has(address)) claims.taken(address, link);
      announced = new Set(devices.keys());
      return {
        ...{ isInForce: outcome.isInForce, held, staying },
        problems: [...outcome.problems, ...problems, ...notRenewed(refused)],
      };
    },
    changePods: (plan) =>
      changeFollowed(
        connections,
        plan,
        () => kernel.changePods(plan),
        (isDone) => isDone,
      ),
    settle: () =>
      connections.settle().then(
        () => [],
        (error: Error) => [connectionsStay(error)],
      ),
    async tearDown() {
      if (!isActive) return [];
      kernel.forget();
      try {
        await removeTraces(context);
      } catch (error) {
        return [tracesStay(error as Error)];
      }
      boundary.set({});
      isActive = false;
      return [];
    },
  };
};
