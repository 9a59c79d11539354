import { TAILNET_INTERFACE } from '@unbounded/keeper-protocol';
import type { Expression, TableSpec } from '@unbounded/nftables';

/**
 * What may come into a pod by its device: packets from where the pod itself sends by the device, to an address of the pod. The tailnet's
 * control server says who its peers are and which addresses they have; without this rule a peer of its making could send in the name
 * of a pod, a node or a Service, past every NetworkPolicy.
 */

/** In the pod's network namespace; nobody else's name. */
export const POD_TABLE = { family: 'inet', name: 'unbounded_tailnet' } as const;
/** Before connection tracking (NF_IP_PRI_CONNTRACK is -200). */
const RAW = -300;

const fromDevice: Expression = { match: 'meta', key: 'iifname', op: '==', value: TAILNET_INTERFACE };
const drop = (counter: string): readonly Expression[] => [{ do: 'counter', name: counter }, { do: 'drop' }];

export const podFirewall: TableSpec = {
  ...POD_TABLE,
  counters: ['foreign_source', 'foreign_destination'],
  chains: [
    {
      name: 'from_device',
      base: { type: 'filter', hook: 'prerouting', priority: RAW },
      rules: [
        {
          comment: 'from where the pod does not send by the device',
          expressions: [fromDevice, { match: 'route-back', found: false }, ...drop('foreign_source')],
        },
        {
          comment: 'to somebody else',
          expressions: [
            fromDevice,
            { match: 'fib-type', address: 'daddr', op: '!=', type: 'local' },
            ...drop('foreign_destination'),
          ],
        },
      ],
    },
  ],
};
