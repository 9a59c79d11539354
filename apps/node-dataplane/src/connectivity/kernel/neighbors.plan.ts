import { AddressSet, formatPrefix, parsePrefix } from '@unbounded/ip';
import type { Expression, PayloadField, RawField, RuleSpec, SetSpec } from '@unbounded/nftables';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { baseOf, CONNECTIVITY_CHAINS } from '../../kernel/base-chains.ts';
import type { TableContent } from '../../kernel/section-table.ts';
import { addressSet } from '../../kernel/address-sets.ts';
import { COUNTERS, type FirewallPart } from './firewall-parts.ts';
import { overlayOnly } from './leaks.plan.ts';
import type { Family } from '../../kernel/nft-family.ts';
import type { OwnNetwork } from './own-network.ts';
import { ICMPV6 } from '../../kernel/protocol-numbers.ts';

/**
 * Nobody on a device that is not ours is believed to have, or asked about, an address that is routed into the overlay: neither ARP nor
 * neighbor discovery (RFC 4861) leave entries for them. A subnet of such a device is that device's all the same: hosts of it resolve each
 * other, also nodes of another site that share it.
 */

const DISCOVERY = 'neighbor_discovery';
const TYPES_OF_DISCOVERY = 'neighbor_discovery_types';
/** Operation of ARP (RFC 826). */
const ARP_REQUEST = 1;
/** Of ICMPv6. */
const [ROUTER_SOLICITATION, ROUTER_ADVERTISEMENT, SOLICITATION, ADVERTISEMENT, REDIRECT] = [
  133, 134, 135, 136, 137,
] as const;
const TYPES = [ROUTER_SOLICITATION, ROUTER_ADVERTISEMENT, SOLICITATION, ADVERTISEMENT, REDIRECT];
/** From the ICMPv6 header: the target, and the destination that a redirect is about. */
const TARGET: RawField = { base: 'transport', offsetBytes: 8, lengthBytes: 16 };
const REDIRECTED: RawField = { base: 'transport', offsetBytes: 24, lengthBytes: 16 };

const elsewhere = (plan: KernelPlan, { onLink }: OwnNetwork): string[] =>
  AddressSet.of(overlayOnly(plan))
    .subtract(AddressSet.of(onLink.map(parsePrefix)))
    .toPrefixes()
    .map(formatPrefix);

const setOf = (family: Family, plan: KernelPlan, network: OwnNetwork): SetSpec =>
  addressSet('no_neighbors', family, elsewhere(plan, network));

const ofOurDevices: RuleSpec = {
  comment: 'by a device of ours',
  expressions: [{ match: 'device', key: 'iifname', op: '==', set: 'overlay_devices' }, { do: 'return' }],
};

const refused = (comment: string, field: PayloadField | RawField, set: string, ...first: Expression[]): RuleSpec => ({
  comment,
  expressions: [
    ...first,
    { match: 'set', field, op: '==', set },
    { do: 'counter', name: COUNTERS.overlayNeighbor },
    { do: 'drop' },
  ],
});
const hasType = (type: number): Expression => ({ match: 'payload', field: 'icmpv6.type', op: '==', value: type });

const isRequest: Expression = { match: 'payload', field: 'arp.operation', op: '==', value: ARP_REQUEST };

/** Neighbor discovery. */
export const planNeighbors = (plan: KernelPlan, network: OwnNetwork): FirewallPart => ({
  sets: [setOf('ip6', plan, network)],
  chains: [
    {
      name: DISCOVERY,
      rules: [
        ofOurDevices,
        refused('its sender lives in the overlay', 'ip6.saddr', 'no_neighbors_ip6'),
        ...[SOLICITATION, ADVERTISEMENT, REDIRECT].map((type) =>
          refused(`type ${type}: its target lives in the overlay`, TARGET, 'no_neighbors_ip6', hasType(type)),
        ),
        refused('redirected from the overlay', REDIRECTED, 'no_neighbors_ip6', hasType(REDIRECT)),
      ],
    },
    {
      name: TYPES_OF_DISCOVERY,
      rules: TYPES.map((type) => ({
        comment: `neighbor discovery: type ${type}`,
        expressions: [hasType(type), { do: 'goto', chain: DISCOVERY }],
      })),
    },
    {
      name: 'neighbors',
      base: baseOf(CONNECTIVITY_CHAINS.neighbors),
      // Every packet to this node comes here: it is asked once.
      rules: [
        {
          comment: 'ICMPv6',
          expressions: [
            { match: 'meta', key: 'l4proto', op: '==', value: ICMPV6 },
            { do: 'goto', chain: TYPES_OF_DISCOVERY },
          ],
        },
      ],
    },
  ],
});

/** ARP, in a table of its own family. @param devices of the overlay */
export const planArp = (plan: KernelPlan, devices: readonly string[], network: OwnNetwork): TableContent => ({
  drops: [COUNTERS.overlayNeighbor],
  sets: [{ name: 'overlay_devices', type: 'ifname', elements: devices }, setOf('ip', plan, network)],
  chains: [
    {
      name: 'arp',
      base: baseOf(CONNECTIVITY_CHAINS.arp),
      rules: [
        ofOurDevices,
        refused('its sender lives in the overlay', 'arp.spa', 'no_neighbors_ip'),
        // A reply to the node's own request has this target where the packet that asked for it had an address of the overlay as source.
        refused('it asks for an address that lives in the overlay', 'arp.tpa', 'no_neighbors_ip', isRequest),
      ],
    },
  ],
});
