import { addressText, labelSelector, ruleAddressRules, ruleFields } from '../egress-fields.ts';
import { conditions, nodeName, SPEC, STATUS } from '../fields.ts';
import { conditionColumn, defineKind, type ObjectOf } from '../kind.ts';
import { MAX_EGRESS_ASSIGNED_ADDRESSES } from '../names.ts';
import { type CelRule, type Infer, integer, list, object, optional, type Schema, string } from '../schema.ts';

/** Rules of one object. */
const MAX_RULES = 32;

const numbers = {
  addresses: optional(
    integer({ description: 'Addresses of each family that the pool has; 1 when not set.', minimum: 1, maximum: 16 }),
  ),
  priority: optional(
    integer({
      description:
        'The rule with the lowest number that matches a packet serves it; on a tie that with the longest cidr, then the oldest object, then the first by name.',
      minimum: -2_147_483_648,
      maximum: 2_147_483_647,
    }),
    100,
  ),
};

const podSourceRule: CelRule = {
  rule: '[has(self.service__dash__name), has(self.podSelector)].exists_one(given, given)',
  message:
    'must have exactly one of service-name and podSelector: the name of a Service, or labels of pods ({}: all pods of the namespace)',
};

const rule = object(
  {
    ...ruleFields,
    ...numbers,
    'service-name': optional(
      string({
        description: 'A Service of the namespace; the pods that it selects are covered, ready or not.',
        minLength: 1,
        maxLength: 63,
      }),
    ),
    podSelector: optional(labelSelector('Pods of the namespace, instead of those of a Service; empty: all.')),
  },
  { rules: [podSourceRule, ...ruleAddressRules] },
);
export type StaticEgressRule = Infer<typeof rule>;

const clusterRule = object(
  {
    ...ruleFields,
    ...numbers,
    namespaceSelector: labelSelector('Namespaces whose pods are covered; empty: all.'),
    podSelector: optional(labelSelector('Pods of these namespaces; absent or empty: all.')),
  },
  { rules: ruleAddressRules },
);
export type ClusterStaticEgressRule = Infer<typeof clusterRule>;

const assignedAddress = object({
  address: addressText('The address.'),
  rule: integer({ description: 'Place of its rule in spec.rules, from 0.', minimum: 0, maximum: MAX_RULES - 1 }),
  selection: string({
    description: 'Fingerprint of what the rule selects: an address stays with its rule when rules are inserted.',
    maxLength: 16,
  }),
  pool: optional(string({ description: 'The pool that it is allocated from.', maxLength: 63 })),
  node: optional(nodeName('The node that owns it; absent: none.')),
  formerNode: optional(
    nodeName('The node that owned it and has not confirmed yet that it released it; until then none does.'),
  ),
  since: optional(string({ description: 'When that node became its owner.', format: 'date-time', maxLength: 64 })),
  epoch: optional(
    integer({ description: 'Number of owners that it has had.', minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  ),
});
/** An address of a rule, and its owner. */
export type AssignedAddress = Infer<typeof assignedAddress>;

const status = optional(
  object(
    {
      addresses: optional(
        list(assignedAddress, {
          description: 'Addresses of the rules and their owners.',
          as: 'atomic',
          maxItems: MAX_EGRESS_ASSIGNED_ADDRESSES,
        }),
      ),
      pods: optional(
        integer({ description: 'Pods that leave with one of the addresses.', minimum: 0, maximum: 1_000_000 }),
      ),
      conditions,
    },
    STATUS,
  ),
);

const columns = [
  { name: 'Addresses', type: 'string', jsonPath: '.status.addresses[*].address' },
  { name: 'Owners', type: 'string', jsonPath: '.status.addresses[*].node' },
  { name: 'Pods', type: 'integer', jsonPath: '.status.pods' },
  conditionColumn('Ready', 'Ready'),
] as const;

const bodyOf = <R>(oneRule: Schema<R>) =>
  object({
    spec: object(
      {
        rules: list(oneRule, {
          description: 'Which pods leave with which address, to where.',
          as: 'atomic',
          minItems: 1,
          maxItems: MAX_RULES,
        }),
      },
      SPEC,
    ),
    status,
  });

export const staticEgressIpKind = defineKind({
  kind: 'StaticEgressIP',
  plural: 'staticegressips',
  singular: 'staticegressip',
  shortNames: ['seip'],
  description: 'Pods of a namespace that leave the cluster with an address of their own.',
  scope: 'Namespaced',
  hasStatus: true,
  columns,
  body: bodyOf(rule),
});
export type StaticEgressIP = ObjectOf<typeof staticEgressIpKind>;

export const clusterStaticEgressIpKind = defineKind({
  kind: 'ClusterStaticEgressIP',
  plural: 'clusterstaticegressips',
  singular: 'clusterstaticegressip',
  shortNames: ['cseip'],
  description:
    'Pods of namespaces with certain labels that leave the cluster with an address of their own. Takes precedence over StaticEgressIP.',
  hasStatus: true,
  columns,
  body: bodyOf(clusterRule),
});
export type ClusterStaticEgressIP = ObjectOf<typeof clusterStaticEgressIpKind>;
