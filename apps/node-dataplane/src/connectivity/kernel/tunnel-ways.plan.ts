import type { Expression, RuleSpec, SetSpec } from '@unbounded/nftables';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { baseOf, CONNECTIVITY_CHAINS } from '../../kernel/base-chains.ts';
import { addressSets, isIn, ofFamily } from '../../kernel/address-sets.ts';
import { COUNTERS, type FirewallPart } from './firewall-parts.ts';
import { FAMILIES } from '../../kernel/nft-family.ts';
import type { OwnNetwork } from './own-network.ts';
import { rulesFor, type TakenPackets } from './taken-packets.plan.ts';

/**
 * By which way unencrypted tunnel packets come: nothing but its outer source tells whose a packet is, so it is taken where that sender
 * could have sent it. At the address that peers use, and by a device that leads back to the sender, with several ways by any of them.
 *
 * Peers by external addresses may send to a NAT before this node, whose translation leads to an address that no list says: at any that
 * the device has by which they come, or that is on no device with a cable. So may all where the NAT has the address that peers know.
 */

const AT_ADDRESS = 'tunnel_packets_at_address';
const WAY_BACK = 'tunnel_packets_way_back';

const HAS_FAMILY = {
  ip: { match: 'meta', key: 'nfproto', op: '==', value: 2 },
  ip6: { match: 'meta', key: 'nfproto', op: '==', value: 10 },
} as const;

const alternativesSet = (index: number): string => `alternatives_${index}`;

const setsOf = ({ externalTunnelPeers }: KernelPlan, { alternatives }: OwnNetwork): SetSpec[] => [
  ...addressSets('external_peers', externalTunnelPeers),
  ...alternatives.map((elements, index): SetSpec => ({ name: alternativesSet(index), type: 'ifname', elements })),
];

const atDevice: Expression = { match: 'fib-type', address: 'daddr', atDevice: true, op: '==', type: 'local' };

const taken = (comment: string, ...match: Expression[]): RuleSpec => ({
  comment,
  expressions: [...match, { do: 'goto', chain: WAY_BACK }],
});

const atAddress = ({ ownAddresses }: KernelPlan): RuleSpec[] =>
  FAMILIES.flatMap((family) => {
    const isKnown = ofFamily(family, ownAddresses).length > 0;
    const peers = isKnown ? [isIn(family, 'saddr', 'external_peers')] : [];
    const who = isKnown ? 'a peer by external addresses' : 'the address is that of a NAT';
    return [
      taken(`${family}: at the address that peers use`, isIn(family, 'daddr', 'internal_addresses')),
      taken(`${family}: ${who}; of the device`, HAS_FAMILY[family], ...peers, atDevice),
      taken(`${family}: ${who}; of no device`, ...peers, isIn(family, 'daddr', 'floating_addresses')),
    ];
  });

/** Of several ways to an IPv6 source the kernel looks at one, which the two addresses decide; of IPv4 at all. */
const wayBack = ({ alternatives }: OwnNetwork): RuleSpec[] => [
  {
    comment: 'it came by a way to its sender',
    expressions: [{ match: 'route-back', found: true }, { do: 'return' }],
  },
  ...alternatives.map((devices, index): RuleSpec => ({
    comment: `ip6: or by another, of ${devices.length}`,
    expressions: [
      HAS_FAMILY.ip6,
      { match: 'device', key: 'iifname', op: '==', set: alternativesSet(index) },
      { match: 'route-device', set: alternativesSet(index) },
      { do: 'return' },
    ],
  })),
];

const strays: RuleSpec = {
  comment: 'not where its sender sends',
  expressions: [{ do: 'counter', name: COUNTERS.strayTunnelPacket }, { do: 'drop' }],
};

export const planTunnelWays = (
  plan: KernelPlan,
  packets: readonly TakenPackets[],
  network: OwnNetwork,
): FirewallPart => ({
  sets: setsOf(plan, network),
  chains:
    packets.length === 0
      ? []
      : [
          {
            name: WAY_BACK,
            rules: [...wayBack(network), strays],
          },
          { name: AT_ADDRESS, rules: [...atAddress(plan), strays] },
          {
            name: 'tunnel_ways',
            base: baseOf(CONNECTIVITY_CHAINS.tunnelWays),
            rules: rulesFor(packets, () => AT_ADDRESS),
          },
        ],
});
