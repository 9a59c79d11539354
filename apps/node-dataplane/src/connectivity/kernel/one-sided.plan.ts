import type { Expression, RuleSpec } from '@unbounded/nftables';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { baseOf, CONNECTIVITY_CHAINS } from '../../kernel/base-chains.ts';
import { isIn } from '../../kernel/address-sets.ts';
import type { FirewallPart } from './firewall-parts.ts';
import { FAMILIES } from '../../kernel/nft-family.ts';

/**
 * Of a connection between other nodes a gateway may see one direction alone, where another gateway carries the answers. Connection tracking
 * calls its packets invalid then (a TCP segment that nothing preceded), and firewalls of hosts drop what is invalid: kube-proxy's iptables
 * mode and firewalld do. Such packets of the overlay, on their way through, go on as untracked. What is valid stays tracked, since the gateway
 * may have translated it.
 */

const INVALID = 'one_sided_invalid';

const isInvalid: Expression = { match: 'ct-state', states: ['invalid'] };

const here: readonly RuleSpec[] = [
  {
    comment: 'to the node itself',
    expressions: [{ match: 'fib-type', address: 'daddr', op: '==', type: 'local' }, { do: 'return' }],
  },
  ...FAMILIES.map((family): RuleSpec => ({
    comment: `${family}: to a pod of the node, which sees both directions`,
    expressions: [isIn(family, 'daddr', 'own_pods'), { do: 'return' }],
  })),
];

const onward: readonly RuleSpec[] = [
  {
    comment: 'out of a tunnel',
    expressions: [{ match: 'device', key: 'iifname', op: '==', set: 'tunnel_devices' }, { do: 'notrack' }],
  },
  ...FAMILIES.map((family): RuleSpec => ({
    comment: `${family}: from who may enter, natively too`,
    expressions: [isIn(family, 'saddr', 'entries'), { do: 'notrack' }],
  })),
];

/** Uses sets of the boundary. */
export const planOneSided = ({ role }: KernelPlan): FirewallPart => ({
  sets: [],
  chains:
    role === 'gateway'
      ? [
          {
            name: 'one_sided',
            base: baseOf(CONNECTIVITY_CHAINS.oneSided),
            rules: [{ expressions: [isInvalid, { do: 'goto', chain: INVALID }] }],
          },
          { name: INVALID, rules: [...here, ...onward] },
        ]
      : [],
});
