import type { ChainSpec, RuleSpec } from '@unbounded/nftables';
import type { Endpoint } from '@unbounded/relay-client';

/**
 * The managed relay's external addresses are led by kube-proxy, on every node, to any of the relay's pods: over the very mesh
 * that the relay is to carry. The first rule that translates a connection is the only one, so one that leaves the address
 * as it is comes before kube-proxy's, and the node's own connections go where the address is.
 */

/** dstnat, where kube-proxy's are, is -100. */
const BEFORE_KUBE_PROXY = -110;
const TCP = 6;

const ruleOf = ({ host, port }: Endpoint): RuleSpec => {
  const family = host.includes(':') ? 'ip6' : 'ip';
  return {
    comment: `the relay is asked where it is: ${host} ${port}`,
    expressions: [
      { match: 'payload', field: `${family}.daddr`, op: '==', value: host },
      { match: 'meta', key: 'l4proto', op: '==', value: TCP },
      { match: 'payload', field: 'th.dport', op: '==', value: port },
      // At a node that has the address itself nobody but kube-proxy knows where it leads.
      { match: 'fib-type', address: 'daddr', op: '!=', type: 'local' },
      { do: 'dnat', to: host },
    ],
  };
};

/** @param ways to the managed relay by addresses */
export const planRelayWays = (ways: readonly Endpoint[]): ChainSpec[] => {
  if (ways.length === 0) return [];
  const base = { type: 'nat', hook: 'output', priority: BEFORE_KUBE_PROXY, policy: 'accept' } as const;
  return [{ name: 'relay_ways', base, rules: ways.map(ruleOf) }];
};
