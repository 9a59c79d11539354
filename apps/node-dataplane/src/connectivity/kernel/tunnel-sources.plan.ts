import { PORTS } from '@unbounded/config/ownership';
import type { RuleSpec, SetSpec } from '@unbounded/nftables';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { ofFamily } from './firewall-parts.ts';
import { sourceTowards } from './own-addresses.ts';

/**
 * The netlink data path's GENEVE devices take no local address, so their packets get the node's own one where they leave.
 * All others say it themselves: routes of VXLAN, IPIP's devices, programs of the eBPF data path.
 */

const UDP = 17;

const FAMILIES = ['ip', 'ip6'] as const;
const peersSet = (family: 'ip' | 'ip6'): string => `geneve_sent_to_${family}`;

const peersOf = (plan: KernelPlan): string[] =>
  plan.tunnels.flatMap(({ kind, remoteIp }) =>
    kind === 'GENEVE' && remoteIp !== undefined && sourceTowards(plan, remoteIp) ? [remoteIp] : [],
  );

export const tunnelPeerSets = (plan: KernelPlan): SetSpec[] =>
  FAMILIES.map((family) => ({
    name: peersSet(family),
    type: family === 'ip' ? 'ipv4' : 'ipv6',
    elements: ofFamily(family, peersOf(plan)),
  }));

/** For the chain that translates sources. */
export const tunnelSourceRules = (plan: KernelPlan): RuleSpec[] =>
  FAMILIES.flatMap((family) => {
    const [own] = ofFamily(family, plan.ownAddresses);
    if (own === undefined || ofFamily(family, peersOf(plan)).length === 0) return [];
    return [
      {
        comment: `${family}: GENEVE comes from the address by which peers know the node`,
        expressions: [
          { match: 'set', field: `${family}.daddr`, op: '==', set: peersSet(family) },
          { match: 'meta', key: 'l4proto', op: '==', value: UDP },
          { match: 'payload', field: 'th.dport', op: '==', value: PORTS.geneve },
          { match: 'payload', field: `${family}.saddr`, op: '!=', value: own },
          { match: 'fib-type', address: 'saddr', op: '==', type: 'local' },
          { do: 'snat', to: own },
        ],
      },
    ];
  });
