import { AddressSet, formatPrefix, parsePrefix, type Prefix } from '@unbounded/ip';
import type { RuleSpec } from '@unbounded/nftables';
import type { KernelPlan, RoutePlan } from '../../data-path/kernel-plan.ts';
import { addressSets, isIn } from '../../kernel/address-sets.ts';
import { COUNTERS, type FirewallPart } from './firewall-parts.ts';
import { FAMILIES } from '../../kernel/nft-family.ts';

/**
 * What is for the overlay leaves by devices of ours or not at all: also while the anchor or a route is missing, when the
 * default route would take the packet out in the clear.
 */

/** The boundary's chain at postrouting hands on to this what goes into no tunnel. */
export const LEAKS = 'leaks';

const isNative = ({ via }: RoutePlan): boolean => via === 'main' || (typeof via === 'object' && 'gateways' in via);

/** Blocks of pods that have no route at all, and must not leave by the default route for that. */
const withheldRoutes = ({ withheld = [] }: KernelPlan): RoutePlan[] =>
  withheld.map((prefix) => ({ prefix, via: 'unreachable', mtuBytes: 0 }));

/** Addresses that the plan's routes lead into the overlay, or nowhere: the longest prefix decides. */
const routedIntoOverlay = (plan: KernelPlan): AddressSet => {
  const routes = [...plan.routes, ...withheldRoutes(plan)];
  const prefixesOf = (some: readonly RoutePlan[]): Prefix[] => some.map(({ prefix }) => parsePrefix(prefix));
  const overlay = routes.filter((route) => !isNative(route));
  return AddressSet.byLongestPrefix(prefixesOf(overlay), prefixesOf(routes.filter(isNative)));
};

/**
 * Of the addresses that are routed into the overlay, those of pods and nodes: what a pool routes besides may have other
 * routes of the administrator's. What is about to change from native routing may still leave natively.
 */
export const overlayOnly = (plan: KernelPlan): Prefix[] => {
  const routed = routedIntoOverlay(plan);
  const { own: locator, blocks: locators = [] } = plan.locators ?? {};
  const kept = AddressSet.of([...plan.masquerade.sources, ...plan.tunnelEnds.addresses, ...locators].map(parsePrefix));
  const elsewhere = [...(plan.alsoPlain ?? []), ...(plan.manageCni ? [] : plan.podCidrs)];
  return (
    routed
      .subtract(routed.subtract(kept))
      .subtract(AddressSet.of(elsewhere.map(parsePrefix)))
      // Those without a route, and its own, which leaves by devices of the section for stretched L2 alone.
      .union(
        AddressSet.of(locators.map(parsePrefix)).subtract(
          AddressSet.of(plan.routes.map((route) => parsePrefix(route.prefix))),
        ),
      )
      .union(AddressSet.of(locator === undefined ? [] : [parsePrefix(locator)]))
      .toPrefixes()
  );
};

export const planLeaks = (plan: KernelPlan): FirewallPart => ({
  sets: addressSets('overlay', overlayOnly(plan).map(formatPrefix)),
  chains: [
    {
      name: LEAKS,
      rules: [
        {
          comment: 'by a device of the overlay',
          expressions: [{ match: 'device', key: 'oifname', op: '==', set: 'overlay_devices' }, { do: 'return' }],
        },
        {
          comment: 'it stays here',
          expressions: [{ match: 'meta', key: 'oifname', op: '==', value: 'lo' }, { do: 'return' }],
        },
        ...FAMILIES.map((family): RuleSpec => ({
          comment: `${family}: for the overlay, but not by it`,
          expressions: [
            isIn(family, 'daddr', 'overlay'),
            { do: 'counter', name: COUNTERS.overlayLeak },
            { do: 'drop' },
          ],
        })),
      ],
    },
  ],
});
