import { PORTS } from '@unbounded/config/ownership';
import type { RuleSpec, SetSpec } from '@unbounded/nftables';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { addressSets, isIn, ofFamily } from '../../kernel/address-sets.ts';
import { FAMILIES } from '../../kernel/nft-family.ts';
import { sourceTowards } from './own-addresses.ts';
import { UDP } from '../../kernel/protocol-numbers.ts';

/**
 * The netlink data path's GENEVE devices take no local address, so their packets get the node's own one where they leave.
 * All others say it themselves: routes of VXLAN, IPIP's devices, programs of the eBPF data path.
 */

const PEERS = 'geneve_sent_to';

const peersOf = (plan: KernelPlan): string[] =>
  plan.tunnels.flatMap(({ kind, remoteIp }) =>
    kind === 'GENEVE' && remoteIp !== undefined && sourceTowards(plan, remoteIp) ? [remoteIp] : [],
  );

export const tunnelPeerSets = (plan: KernelPlan): SetSpec[] => addressSets(PEERS, peersOf(plan));

/** For the chain that translates sources. */
export const tunnelSourceRules = (plan: KernelPlan): RuleSpec[] =>
  FAMILIES.flatMap((family) => {
    const [own] = ofFamily(family, plan.ownAddresses);
    if (own === undefined || ofFamily(family, peersOf(plan)).length === 0) return [];
    return [
      {
        comment: `${family}: GENEVE comes from the address by which peers know the node`,
        expressions: [
          isIn(family, 'daddr', PEERS),
          { match: 'meta', key: 'l4proto', op: '==', value: UDP },
          { match: 'payload', field: 'th.dport', op: '==', value: PORTS.geneve },
          { match: 'payload', field: `${family}.saddr`, op: '!=', value: own },
          { match: 'fib-type', address: 'saddr', op: '==', type: 'local' },
          { do: 'snat', to: own },
        ],
      },
    ];
  });
