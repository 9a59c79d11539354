import type { Expression, RuleSpec } from '@unbounded/nftables';
import { baseOf, CONNECTIVITY_CHAINS } from '../../kernel/base-chains.ts';
import { isIn } from '../../kernel/address-sets.ts';
import { COUNTERS, type FirewallPart } from './firewall-parts.ts';
import { FAMILIES } from '../../kernel/nft-family.ts';
import type { OwnNetwork } from './own-network.ts';
import { TCP } from '../../kernel/protocol-numbers.ts';

const DEVICES_BESIDE_OWN = 'devices_beside_own';

/**
 * Our listeners for metrics answer at the node's internal address, which the kernel takes at any device: to whoever on the WAN routes that
 * address to the node, too. So it is answered by the device that has it, by those of its subnet (a host sends to whichever answered its ARP
 * request), and to the overlay and the node's pods. On loopback or a dummy device an address is one of the whole node.
 */

const AT_ADDRESS = 'listeners_at_address';

const passing = (comment: string, ...match: Expression[]): RuleSpec => ({
  comment,
  expressions: [...match, { do: 'return' }],
});
const byDevice = (set: string): Expression => ({ match: 'device', key: 'iifname', op: '==', set });

const atAddress: readonly RuleSpec[] = [
  passing('from pods or the overlay', byDevice('overlay_devices')),
  passing('from the node itself', { match: 'meta', key: 'iifname', op: '==', value: 'lo' }),
  passing('the device has the address', {
    match: 'fib-type',
    address: 'daddr',
    atDevice: true,
    op: '==',
    type: 'local',
  }),
  passing('of the subnet of the address', byDevice(DEVICES_BESIDE_OWN)),
  ...FAMILIES.flatMap((family): RuleSpec[] => [
    passing(`${family}: an address of the whole node`, isIn(family, 'daddr', 'floating_addresses')),
    passing(`${family}: from a pod, by a device that leads to it`, isIn(family, 'saddr', 'pods'), {
      match: 'route-back',
      found: true,
    }),
    {
      comment: `${family}: at an internal address, by a device that has not got it`,
      expressions: [
        isIn(family, 'daddr', 'internal_addresses'),
        { do: 'counter', name: COUNTERS.strayScrape },
        { do: 'drop' },
      ],
    },
  ]),
];

/** @param ports of metrics, TCP */
export const planListeners = ({ besideOwn }: OwnNetwork, ports: readonly number[]): FirewallPart => ({
  sets: [
    { name: 'metrics_ports', type: 'port', elements: ports.map(String) },
    { name: DEVICES_BESIDE_OWN, type: 'ifname', elements: besideOwn },
  ],
  chains: [
    { name: AT_ADDRESS, rules: atAddress },
    {
      name: 'listeners',
      base: baseOf(CONNECTIVITY_CHAINS.listeners),
      rules: [
        {
          comment: 'metrics',
          expressions: [
            { match: 'meta', key: 'l4proto', op: '==', value: TCP },
            { match: 'set', field: 'th.dport', op: '==', set: 'metrics_ports' },
            { do: 'goto', chain: AT_ADDRESS },
          ],
        },
      ],
    },
  ],
});
