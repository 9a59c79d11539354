import { DEVICES, EGRESS_ROUTE_PROTOCOL, nftTableOf } from '@unbounded/config/ownership';
import type { Problem } from '@unbounded/topology';
import { removeDevice } from '../kernel/links.ts';
import type { SectionContext } from '../section.port.ts';
import { ensureAddresses } from './addresses.ts';
import type { Claims } from './claims.ts';
import type { Connections } from './kernel/connections.ts';
import type { Fence } from './fence.ts';
import { applyEgress } from './kernel/egress-kernel.ts';
import type { RuleTraffic } from './metrics/rule-traffic.ts';
import { countedRoutes } from './plan/counted-routes.plan.ts';
import type { EgressPlan } from './plan/egress-plan.ts';

/** A plan in force in the kernel, and gone without a trace when there is nothing to do. */

export interface Enforced {
  readonly isInForce: boolean;
  /** And no connection is left from before. */
  readonly isSettled: boolean;
  readonly held: ReadonlySet<string>;
  readonly problems: readonly Problem[];
}

export interface Enforcement {
  enforce(plan: EgressPlan): Promise<Enforced>;
}

export const isIdle = ({ steered, translated, addresses }: EgressPlan): boolean =>
  steered.length + translated.length + addresses.length === 0;

const FAMILIES = ['inet', 'ip', 'ip6', 'arp'] as const;
const NOTHING_HELD: ReadonlySet<string> = new Set();

type Context = Pick<SectionContext, 'net' | 'nft' | 'table' | 'boundary'>;

/** Rules first: what they lead to goes after them. */
const tearDown = async ({ net, nft, boundary }: Context): Promise<void> => {
  const rules = (await net.rules.list()).filter(({ protocol }) => protocol === EGRESS_ROUTE_PROTOCOL);
  await net.rules.apply(rules.map((value) => ({ op: 'delete' as const, value })));
  for (const family of FAMILIES) await nft.deleteTable(family, nftTableOf('egress'));
  const routes = await net.routes.list({ protocol: EGRESS_ROUTE_PROTOCOL });
  await net.routes.apply(routes.map((value) => ({ op: 'delete' as const, value })));
  const link = await net.links.get(DEVICES.egress);
  if (link?.alias?.startsWith('unbounded:')) await removeDevice(net, link);
  boundary.set({});
};

/** Whether an agent before this one, or this one, has put anything there. */
export const isInKernel = async ({ nft }: Pick<Context, 'nft'>): Promise<boolean> =>
  nft.hasTable('inet', nftTableOf('egress'));

const connectionsStay = ({ message }: Error): Problem => ({
  reason: 'EgressConnectionsStay',
  message: `connections from before a rule cannot be ended (${message}): their packets are dropped, and no new one takes their ports until they expire; the agent tries again`,
});

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
  let held: ReadonlySet<string> = new Set(parts.former);
  return {
    async enforce(plan) {
      traffic.planned(countedRoutes(plan));
      if (isIdle(plan) && !isActive) return { isInForce: true, isSettled: true, held: NOTHING_HELD, problems: [] };
      isActive = true;
      const wanted = new Set(plan.addresses.map(({ address }) => address));
      const given = [...held].filter((address) => !wanted.has(address));
      for (const address of given) claims.released(address);
      await fence.release(given);
      boundary.set({ devices: [DEVICES.egress] });
      const outcome = await applyEgress({ net, table, counts: traffic }, plan);
      const addresses = await ensureAddresses(net, plan.addresses, held, claims);
      held = addresses.held;
      await fence.hold(held);
      // Behind the fence: what the announcement attracts may pass.
      for (const { address, link } of addresses.taken) claims.taken(address, link);
      const stuck = await connections.settle(plan).then(
        () => [],
        (error: Error) => [connectionsStay(error)],
      );
      const isSettled = outcome.isInForce && stuck.length === 0;
      // Last: until every connection of before has ended the tables keep pods' own addresses from leaving.
      if (isIdle(plan) && isSettled) {
        await tearDown(context);
        isActive = false;
      }
      const problems = [...outcome.problems, ...addresses.problems, ...stuck];
      return { isInForce: outcome.isInForce, isSettled, held, problems };
    },
  };
};
