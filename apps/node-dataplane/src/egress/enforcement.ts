import { nftTableOf } from '@unbounded/config/ownership';
import type { Problem } from '@unbounded/topology';
import { removeDevice } from '../kernel/links.ts';
import type { SectionContext } from '../section.port.ts';
import { ensureAddresses } from './addresses.ts';
import type { Fence } from './fence.ts';
import { applyEgress } from './kernel/egress-kernel.ts';
import type { EgressPlan } from './plan/egress-plan.ts';
import { EGRESS_ROUTE_PROTOCOL, DEVICES } from '@unbounded/config/ownership';

/** A plan in force in the kernel, and gone without a trace when there is nothing to do. */

export interface Enforced {
  readonly isInForce: boolean;
  readonly held: ReadonlySet<string>;
  readonly problems: readonly Problem[];
}

export interface Enforcement {
  enforce(plan: EgressPlan): Promise<Enforced>;
}

export const isIdle = ({ steered, translated, addresses }: EgressPlan): boolean =>
  steered.length + translated.length + addresses.length === 0;

const FAMILIES = ['inet', 'ip', 'ip6'] as const;
const NOTHING_HELD: ReadonlySet<string> = new Set();

type Context = Pick<SectionContext, 'net' | 'nft' | 'table' | 'boundary' | 'traffic'>;

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

export const createEnforcement = (
  context: Context,
  {
    fence,
    wasActive,
    former,
  }: { readonly fence: Fence; readonly wasActive: boolean; readonly former: Iterable<string> },
): Enforcement => {
  const { net, table, boundary, traffic } = context;
  let isActive = wasActive;
  let held: ReadonlySet<string> = new Set(former);
  return {
    async enforce(plan) {
      if (isIdle(plan) && !isActive) return { isInForce: true, held: NOTHING_HELD, problems: [] };
      const wanted = new Set(plan.addresses.map(({ address }) => address));
      await fence.release([...held].filter((address) => !wanted.has(address)));
      if (isIdle(plan)) {
        await ensureAddresses(net, [], held);
        await tearDown(context);
        held = NOTHING_HELD;
        isActive = false;
        return { isInForce: true, held, problems: [] };
      }
      isActive = true;
      boundary.set({ devices: [DEVICES.egress] });
      const outcome = await applyEgress({ net, table }, plan, traffic.current()?.devices ?? []);
      const addresses = await ensureAddresses(net, plan.addresses, held);
      held = addresses.held;
      await fence.hold(held);
      return { isInForce: outcome.isInForce, held, problems: [...outcome.problems, ...addresses.problems] };
    },
  };
};
