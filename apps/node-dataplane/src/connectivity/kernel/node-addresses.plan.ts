import { baseOf, CONNECTIVITY_CHAINS } from '../../kernel/base-chains.ts';
import { MARK_MASK, TRANSIT_MARK } from '@unbounded/config/ownership';
import type { Expression, RuleSpec } from '@unbounded/nftables';
import { DEVICES } from '../../data-path/devices.ts';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { addressSets, isIn, ofFamily } from '../../kernel/address-sets.ts';
import { COUNTERS, type FirewallPart } from './firewall-parts.ts';
import { FAMILIES, type Family } from '../../kernel/nft-family.ts';

/**
 * At a gateway: what came out of the overlay for a node of its own network goes on by that node's tunnel. The mark leads it to
 * the routes that say so; the gateway's own packets to these addresses, its tunnel packets above all, never have it.
 */

const MARK_CHAIN = 'transit_mark';
const TO_NODES = 'transit_to';

const isToNode = (family: Family): Expression => isIn(family, 'daddr', TO_NODES);
const withoutMark: Expression = { match: 'meta', key: 'mark', op: '!=', value: TRANSIT_MARK, mask: MARK_MASK };
const isOverlay = (key: 'iifname' | 'oifname', op: '==' | '!='): Expression => ({
  match: 'device',
  key,
  op,
  set: 'overlay_devices',
});

/**
 * Connections from before, which have the gateway's own address on the node's network: the node would take that from no tunnel.
 */
const masqueradedBefore = (plan: KernelPlan): RuleSpec[] =>
  FAMILIES.flatMap((family) =>
    ofFamily(family, plan.ownAddresses).map((own) => ({
      comment: `${family}: a connection that was masqueraded stays on the LAN`,
      expressions: [
        { match: 'ct-address', direction: 'reply', address: 'daddr', op: '==', value: own },
        { do: 'return' },
      ],
    })),
  );

/** Of a node's connection to a Service by the gateway: it came by the LAN, and the answer has the gateway's address. */
const answersOfServices: RuleSpec = {
  comment: 'the answer of a Service whose client came by the LAN',
  expressions: [
    { match: 'ct-direction', op: '==', value: 'reply' },
    { match: 'ct-translated', of: 'daddr' },
    { do: 'return' },
  ],
};

/** Most packets are for no node: one look into a set is all that these cost. */
const toNodes: readonly RuleSpec[] = FAMILIES.map((family) => ({
  comment: `${family}: to a node that has a tunnel`,
  expressions: [isToNode(family), { do: 'goto', chain: MARK_CHAIN }],
}));

const markRules = (plan: KernelPlan): RuleSpec[] => [
  {
    comment: 'from pods of the gateway, which are on its network',
    expressions: [{ match: 'meta', key: 'iifname', op: '==', value: DEVICES.bridge }, { do: 'return' }],
  },
  { comment: 'not out of the overlay', expressions: [isOverlay('iifname', '!='), { do: 'return' }] },
  ...masqueradedBefore(plan),
  answersOfServices,
  { comment: 'by its tunnel', expressions: [{ set: 'mark', value: TRANSIT_MARK, mask: MARK_MASK }] },
];

/**
 * The route has been chosen here. A tunnel looks up that of its own packet with the mark of the one inside: that would lead
 * into the tunnel again. Without a route of ours the packet has a source that the node takes from its tunnel alone.
 */
const forwardRules: readonly RuleSpec[] = [
  { comment: 'most packets', expressions: [withoutMark, { do: 'return' }] },
  {
    comment: 'into the tunnel, without the mark',
    expressions: [isOverlay('oifname', '=='), { set: 'mark', value: 0, mask: MARK_MASK }, { do: 'return' }],
  },
  ...FAMILIES.map((family): RuleSpec => ({
    comment: `${family}: to a node, but not by its tunnel`,
    expressions: [
      isOverlay('iifname', '=='),
      isToNode(family),
      { do: 'counter', name: COUNTERS.overlayLeak },
      { do: 'drop' },
    ],
  })),
];

export const planNodeAddresses = (plan: KernelPlan): FirewallPart => {
  const nodes = (plan.transitRoutes ?? []).map(({ prefix }) => prefix);
  if (nodes.length === 0) return { sets: [], chains: [] };
  return {
    sets: addressSets(TO_NODES, nodes),
    chains: [
      {
        name: 'transit',
        base: baseOf(CONNECTIVITY_CHAINS.transit),
        rules: toNodes,
      },
      { name: MARK_CHAIN, rules: markRules(plan) },
      {
        name: 'transit_forward',
        base: baseOf(CONNECTIVITY_CHAINS.transitForward),
        rules: forwardRules,
      },
    ],
  };
};
