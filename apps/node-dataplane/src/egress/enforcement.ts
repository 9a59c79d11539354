import { DEVICES } from '@unbounded/config/ownership';
import type { Problem } from '@unbounded/topology';
import type { SectionContext } from '../section.port.ts';
import { ensureAddresses } from './addresses.ts';
import type { Claims } from './claims.ts';
import type { Connections } from './kernel/connections.ts';
import type { Fence } from './fence.ts';
import { applyEgress } from './kernel/egress-kernel.ts';
import { removeTraces } from './kernel/traces.ts';
import type { RuleTraffic } from './metrics/rule-traffic.ts';
import { countedRoutes } from './plan/counted-routes.plan.ts';
import type { EgressPlan } from './plan/egress-plan.ts';

/** A plan in force in the kernel, and gone without a trace when there is nothing to do. */

export interface Enforced {
  readonly isInForce: boolean;
  /** And no connection is left from before. */
  readonly isSettled: boolean;
  readonly held: ReadonlySet<string>;
  /** Addresses that the node is to have no more, and that a device has still. */
  readonly staying: ReadonlySet<string>;
  readonly problems: readonly Problem[];
}

export interface Enforcement {
  /**
   * @param assigned addresses that slices name, those that are to be released too
   * @param onInForce packets go as the plan says from now on; connections of before have not ended yet
   */
  enforce(plan: EgressPlan, assigned: ReadonlySet<string>, onInForce?: () => void): Promise<Enforced>;
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
  let isActive = parts.wasActive;
  let had: ReadonlySet<string> = new Set(parts.former);
  const tearDown = async (): Promise<Problem[]> => {
    try {
      await removeTraces(context);
    } catch (error) {
      return [tracesStay(error as Error)];
    }
    boundary.set({});
    isActive = false;
    return [];
  };
  return {
    async enforce(plan, assigned, onInForce) {
      traffic.planned(countedRoutes(plan));
      if (isIdle(plan) && !isActive)
        return { isInForce: true, isSettled: true, held: NOTHING, staying: NOTHING, problems: [] };
      isActive = true;
      const wanted = new Set(plan.addresses.map(({ address }) => address));
      const given = [...had].filter((address) => !wanted.has(address));
      for (const address of given) claims.released(address);
      await fence.release(given);
      boundary.set({ devices: [DEVICES.egress] });
      const outcome = await applyEgress({ net, table, counts: traffic }, plan);
      if (outcome.isInForce) onInForce?.();
      const { held, staying, taken, problems } = await ensureAddresses(
        net,
        plan.addresses,
        had.union(assigned),
        claims,
      );
      had = held.union(staying);
      const refused = await fence.hold(held);
      // Behind the fence: what the announcement attracts may pass.
      for (const { address, link } of taken) claims.taken(address, link);
      const stuck = await connections.settle(plan).then(
        () => [],
        (error: Error) => [connectionsStay(error)],
      );
      const isSettled = outcome.isInForce && stuck.length === 0;
      // Last: until every connection of before has ended the tables keep pods' own addresses from leaving.
      const left = isIdle(plan) && isSettled && staying.size === 0 ? await tearDown() : [];
      return {
        ...{ isInForce: outcome.isInForce, isSettled, held, staying },
        problems: [...outcome.problems, ...problems, ...notRenewed(refused), ...stuck, ...left],
      };
    },
  };
};
