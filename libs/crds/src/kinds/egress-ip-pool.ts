import { address, labelSelector, unicastAddress } from '../egress-fields.ts';
import { conditions, LONGEST_CIDR, nameFitsLabel, routableCidrs, SPEC, STATUS } from '../fields.ts';
import { conditionColumn, defineKind, type ObjectOf } from '../kind.ts';
import { type CelRule, integer, list, object, oneOf, optional, string } from '../schema.ts';

const rangeRules: readonly CelRule[] = [
  {
    rule: '!isIP(self.from) || !isIP(self.to) || ip(self.from).family() == ip(self.to).family()',
    message: 'from and to must be of the same IP family',
    messageExpression: `'from "' + self.from + '" and to "' + self.to + '" must be of the same IP family'`,
  },
];

const range = object(
  { from: unicastAddress('First address.'), to: unicastAddress('Last address, not below the first.') },
  { rules: rangeRules },
);

const exclusion = string({
  description: '192.0.2.1, 192.0.2.0/28 or 2001:db8::/120',
  maxLength: LONGEST_CIDR,
  rules: [
    {
      rule: 'isIP(self) || isCIDR(self)',
      message: 'must be an address or a block: write it like 192.0.2.1 or 192.0.2.0/28',
      messageExpression: `'"' + self + '" is neither an address nor a block: write it like 192.0.2.1 or 192.0.2.0/28'`,
    },
  ],
});

const poolRules: readonly CelRule[] = [
  {
    rule: '(has(self.blocks) && size(self.blocks) > 0) || (has(self.ranges) && size(self.ranges) > 0)',
    message: 'must have an address: blocks like 192.0.2.0/28, or ranges from one address to another',
  },
];

const nextHopRules: readonly CelRule[] = [
  {
    rule: '[4, 6].all(family, self.filter(hop, isIP(hop) && ip(hop).family() == family).size() <= 1)',
    message: 'must have at most one address of each IP family',
  },
];

const count = (description: string) => optional(integer({ description, minimum: 0, maximum: 1_000_000 }));

export const egressIpPoolKind = defineKind({
  kind: 'EgressIPPool',
  plural: 'egressippools',
  singular: 'egressippool',
  shortNames: ['eipp'],
  description: 'Addresses that pods can leave the cluster with, who may use them, and nodes that can own them.',
  hasStatus: true,
  columns: [
    { name: 'Blocks', type: 'string', jsonPath: '.spec.blocks' },
    { name: 'Assigned', type: 'integer', jsonPath: '.status.assigned' },
    { name: 'Free', type: 'integer', jsonPath: '.status.free' },
    conditionColumn('Accepted', 'Accepted'),
  ],
  body: object(
    {
      spec: object(
        {
          blocks: optional(routableCidrs('Blocks of addresses.', { maxItems: 64 })),
          ranges: optional(list(range, { description: 'Ranges of addresses.', as: 'atomic', maxItems: 64 })),
          exclusions: optional(
            list(exclusion, {
              description: 'Addresses and blocks that are not allocated. What is allocated already stays.',
              as: 'set',
              maxItems: 256,
            }),
          ),
          nodeSelector: optional(labelSelector('Nodes that can own the addresses; absent or empty: all.')),
          namespaceSelector: optional(
            labelSelector('Namespaces whose StaticEgressIP may use the pool; absent or empty: all.'),
          ),
          interface: optional(
            string({
              description:
                'The device that the addresses are announced on; absent: that with the subnet of the address.',
              pattern: '^[^/:\\s]{1,15}$',
              maxLength: 15,
            }),
          ),
          nextHops: optional(
            list(address('192.0.2.1 or fe80::1'), {
              description:
                'Routers that packets leave by, one of each family; absent: what the routes of the owner say.',
              as: 'set',
              maxItems: 2,
              rules: nextHopRules,
            }),
          ),
          announce: optional(
            oneOf(['L2', 'None'], {
              description: 'L2: the owner answers ARP and NDP for an address. None: a route leads to the owner.',
            }),
            'L2' as const,
          ),
        },
        { ...SPEC, rules: poolRules },
      ),
      status: optional(
        object(
          {
            assigned: count('Addresses of the pool that rules have.'),
            free: count('Addresses that can be allocated, 1000000 at most.'),
            conditions,
          },
          STATUS,
        ),
      ),
    },
    { rules: [nameFitsLabel] },
  ),
});
export type EgressIPPool = ObjectOf<typeof egressIpPoolKind>;
