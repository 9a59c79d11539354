import type { ChainSpec, Expression, RuleSpec } from '@unbounded/nftables';
import type { Endpoint } from '@unbounded/relay-client';
import { baseOf, CONNECTIVITY_CHAINS } from '../../kernel/base-chains.ts';
import { familyOf } from '../../kernel/nft-family.ts';
import { TCP } from '../../kernel/protocol-numbers.ts';

/**
 * The managed relay's external addresses are led by kube-proxy, on every node, to any of the relay's pods: over the very mesh
 * that the relay is to carry. The node's own connections to the relay are to go where the address is.
 */

/** kube-proxy's table when it works with nftables, in the families ip and ip6. */
export const KUBE_PROXY_TABLE = 'kube-proxy';

export interface RelayWays {
  /** By addresses. */
  readonly ways: readonly Endpoint[];
  /**
   * kube-proxy works with nftables: it not only translates, it also drops connections to such an address on nodes without a pod
   * of the relay (`externalTrafficPolicy: Local`).
   */
  readonly isKubeProxyNft: boolean;
}

/** At a node that has the address itself nobody but kube-proxy knows where it leads. */
const towards = ({ host, port }: Endpoint): Expression[] => [
  { match: 'payload', field: `${familyOf(host)}.daddr`, op: '==', value: host },
  { match: 'meta', key: 'l4proto', op: '==', value: TCP },
  { match: 'payload', field: 'th.dport', op: '==', value: port },
  { match: 'fib-type', address: 'daddr', op: '!=', type: 'local' },
];
const back = ({ host, port }: Endpoint): Expression[] => [
  { match: 'payload', field: `${familyOf(host)}.saddr`, op: '==', value: host },
  { match: 'meta', key: 'l4proto', op: '==', value: TCP },
  { match: 'payload', field: 'th.sport', op: '==', value: port },
  { match: 'fib-type', address: 'daddr', op: '==', type: 'local' },
];
const ruleOf = (way: Endpoint, expressions: Expression[]): RuleSpec => ({
  comment: `the relay is asked where it is: ${way.host} ${way.port}`,
  expressions,
});

/** The first rule that translates a connection is the only one: one that leaves the address as it is comes before kube-proxy's. */
const asAddressed = (ways: readonly Endpoint[]): ChainSpec => ({
  name: 'relay_ways',
  base: baseOf(CONNECTIVITY_CHAINS.relayWays),
  rules: ways.map((way) => ruleOf(way, [...towards(way), { do: 'dnat', to: way.host }])),
});

/** What is not tracked is not new to kube-proxy, which neither translates nor drops it. */
const untracked = (ways: readonly Endpoint[]): ChainSpec[] => [
  {
    name: 'relay_ways',
    base: baseOf(CONNECTIVITY_CHAINS.relayWaysUntracked),
    rules: ways.map((way) => ruleOf(way, [...towards(way), { do: 'notrack' }])),
  },
  {
    name: 'relay_answers',
    base: baseOf(CONNECTIVITY_CHAINS.relayAnswers),
    rules: ways.map((way) => ruleOf(way, [...back(way), { do: 'notrack' }])),
  },
];

export const planRelayWays = ({ ways, isKubeProxyNft }: RelayWays): ChainSpec[] => {
  if (ways.length === 0) return [];
  return isKubeProxyNft ? untracked(ways) : [asAddressed(ways)];
};
