import { DEVICES } from '@unbounded/config/ownership';
import type { ChainSpec, Expression, SetSpec } from '@unbounded/nftables';
import { addressSets, ofFamily, singleSets } from '../../kernel/address-sets.ts';
import { baseOf, EGRESS_CHAINS } from '../../kernel/base-chains.ts';
import { ADDRESS_TYPE, FAMILIES, type Family } from '../../kernel/nft-family.ts';
import type { TableContent } from '../../kernel/section-table.ts';
import { countedRoutes } from './counted-routes.plan.ts';
import { NOT_ROUTED, planDecisions } from './decisions.plan.ts';
import type { EgressPlan } from './egress-plan.ts';
import { planGuards } from './guards.plan.ts';
import { clearMark, EGRESS_DROPS, FENCE_DROP, isMarked, rule, SETS, SOLICITED } from './names.ts';
import { classSets, namedClasses, podAddresses } from './route-rules.plan.ts';
import { planTranslation } from './translation.plan.ts';
import { planTunnelPackets, tunnelPacketSets } from './tunnel-packets.plan.ts';

/** The nftables tables of egress. */

/** The table of the family inet. */
export const planEgressTable = (plan: EgressPlan): TableContent => {
  const classes = [...namedClasses('steered', plan.steered), ...namedClasses('translated', plan.translated)];
  const routes = countedRoutes(plan);
  const devices = [...new Set([...plan.overlayDevices, DEVICES.bridge, DEVICES.egress])].sort();
  return {
    drops: Object.values(EGRESS_DROPS),
    counters: [...new Set(routes.flatMap(({ counters }) => Object.values(counters)))],
    sets: [
      ...addressSets(SETS.cluster, [...plan.cluster, ...FAMILIES.flatMap((family) => NOT_ROUTED[family])]),
      ...addressSets(SETS.apiServices, plan.apiServices),
      ...addressSets(SETS.podBlocks, plan.podCidrs),
      ...singleSets(SETS.selected, podAddresses(plan.steered)),
      ...singleSets(SETS.remote, podAddresses(plan.translated)),
      ...addressSets(
        SETS.owned,
        plan.addresses.map(({ address }) => address),
      ),
      { name: SETS.overlay, type: 'ifname', elements: devices },
      ...FAMILIES.flatMap((family) => classes.flatMap((own) => classSets(own, family))),
      ...tunnelPacketSets(plan),
    ],
    chains: [...planDecisions(plan, routes), ...planTranslation(plan), ...planGuards(), ...planTunnelPackets(plan)],
  };
};

/** So many addresses of a family can a node own. */
export const MAX_LIVE = 4096;

/** Of the addresses that the node may use right now; each leaves it by itself. */
export const liveSet = (family: Family): SetSpec => ({
  name: SETS.live,
  type: ADDRESS_TYPE[family],
  elements: [],
  timed: { maxElements: MAX_LIVE },
});

const byWhoStandsStill = 'owned no more, or by an agent that stands still';
const fenced: readonly Expression[] = [{ do: 'counter', name: FENCE_DROP }, { do: 'drop' }];

/** Who is asked for an egress address of IPv6 answers only while it may use it. Marked by the table of the family inet. */
const solicited: ChainSpec = {
  name: EGRESS_CHAINS.solicited.name,
  base: baseOf(EGRESS_CHAINS.solicited),
  rules: [
    rule('not about an egress address', isMarked('translate', '!='), { do: 'return' }),
    rule(byWhoStandsStill, { match: 'set', field: SOLICITED, op: '!=', set: SETS.live }, ...fenced),
    rule('decided and done', clearMark),
  ],
};

/**
 * The fence of one family: only while an address is an element of its set, which expires, does anything leave with it. A table of its own,
 * because one that is replaced loses such elements.
 */
export const planFence = (family: Family): TableContent => {
  const chain = family === 'ip' ? EGRESS_CHAINS.fence : EGRESS_CHAINS.fence6;
  return {
    drops: [FENCE_DROP],
    sets: [liveSet(family)],
    chains: [
      {
        name: chain.name,
        base: baseOf(chain),
        rules: [
          rule(
            byWhoStandsStill,
            isMarked('translate'),
            { match: 'set', field: `${family}.saddr`, op: '!=', set: SETS.live },
            ...fenced,
          ),
        ],
      },
      ...(family === 'ip6' ? [solicited] : []),
    ],
  };
};

/** The same for ARP: who is asked for an egress address of IPv4 answers only while it may use it. */
export const planArpFence = ({ addresses }: Pick<EgressPlan, 'addresses'>): TableContent => ({
  drops: [FENCE_DROP],
  sets: [
    liveSet('ip'),
    {
      name: SETS.owned,
      type: 'ipv4',
      elements: ofFamily(
        'ip',
        addresses.map(({ address }) => address),
      ),
    },
  ],
  chains: [
    {
      name: EGRESS_CHAINS.asked.name,
      base: baseOf(EGRESS_CHAINS.asked),
      rules: [
        rule(
          byWhoStandsStill,
          { match: 'set', field: 'arp.tpa', op: '==', set: SETS.owned },
          { match: 'set', field: 'arp.tpa', op: '!=', set: SETS.live },
          ...fenced,
        ),
      ],
    },
  ],
});
