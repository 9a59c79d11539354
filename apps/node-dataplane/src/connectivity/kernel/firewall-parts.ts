import { DEVICES } from '../../data-path/devices.ts';
import type { ChainSpec, Expression, RuleSpec, SetSpec } from '@unbounded/nftables';
import { addressSets, isIn, ofFamily } from '../../kernel/address-sets.ts';
import { FAMILIES } from '../../kernel/nft-family.ts';
import type { OwnNetwork } from './own-network.ts';

/** What the parts of our nftables table have in common. */

export interface FirewallPart {
  readonly sets: readonly SetSpec[];
  readonly chains: readonly ChainSpec[];
}

/** Names of counters: why a packet was dropped. They are the values of the metric's label `reason`. */
export const COUNTERS = {
  /** A pod's address that came in by no tunnel, or a node's that is reached by one. */
  forgedSource: 'forged_source',
  /** A pod's address that came in natively, but not by the device that leads back to it. */
  noRouteBack: 'no_route_back',
  /** A pod's tunnel packet to a node. */
  injectedTunnelPacket: 'injected_tunnel_packet',
  /** A packet to the overlay that was about to leave outside of it. */
  overlayLeak: 'overlay_leak',
  /** A packet out of the overlay to where this node is no exit. */
  unlistedExit: 'unlisted_exit',
  /** A packet into the overlay from a source outside of it that is not listed. */
  unlistedEntry: 'unlisted_entry',
  /** A tunnel packet to another address than peers use, or by a device that does not lead to its sender. */
  strayTunnelPacket: 'stray_tunnel_packet',
  /** For metrics, at an internal address, by a device that has not that address. */
  strayScrape: 'stray_scrape',
  /** ARP or neighbor discovery about an address of the overlay, by a device that is not of it. */
  overlayNeighbor: 'overlay_neighbor',
  /** A packet to the address of the node's echoes that is none of them. */
  strayEcho: 'stray_echo',
  /** An ICMP error about a tunnel of ours. */
  tunnelIcmpError: 'tunnel_icmp_error',
  /** A tunnel packet whose inner source is not its sender's (netlink data path). */
  forgedInnerSource: 'forged_inner_source',
} as const;

const nativelyBy = (index: number): string => `natively_by_${index}`;

/**
 * Between two steps of a change of protocol one end sends natively and the other does not, or the other way round: its packets come by
 * the device that leads to that neighbor, whatever way leads back to their sources at the moment. Of these each device has its own.
 */
export const nativeMeanwhile = ({ native }: OwnNetwork, comment: string, action: Expression): RuleSpec[] =>
  FAMILIES.flatMap((family) =>
    native.flatMap(({ device, prefixes }, index): RuleSpec[] =>
      ofFamily(family, prefixes).length === 0
        ? []
        : [
            {
              comment: `${family}: ${comment}`,
              expressions: [
                { match: 'meta', key: 'iifname', op: '==', value: device },
                isIn(family, 'saddr', nativelyBy(index)),
                isIn(family, 'saddr', 'also_plain'),
                action,
              ],
            },
          ],
    ),
  );

/** That its rules ask. */
export const nativeSets = ({ native }: OwnNetwork): SetSpec[] =>
  native.flatMap(({ prefixes }, index) => addressSets(nativelyBy(index), prefixes));

/** Devices of the overlay behind which its packets are not in a tunnel. */
export const ENDS: ReadonlySet<string> = new Set([DEVICES.bridge, DEVICES.echo]);
