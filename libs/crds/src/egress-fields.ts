import { cidr, LONGEST_ADDRESS, objectName } from './fields.ts';
import { type CelRule, type Infer, list, map, object, oneOf, optional, type Schema, string } from './schema.ts';

/** Fields that several kinds of static egress share. */

/** Longest key of a label: a prefix of 253 characters, a slash, a name of 63. */
const LONGEST_LABEL_KEY = 317;
const labelValue = string({ description: 'value of a label', maxLength: 63 });

const requirementRules: readonly CelRule[] = [
  {
    rule: `(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)`,
    message: 'values must be given for the operators In and NotIn, and must be absent for Exists and DoesNotExist',
    messageExpression: `'operator "' + self.operator + '": values must be given for In and NotIn, and must be absent for Exists and DoesNotExist'`,
    fieldPath: '.values',
  },
];

const requirement = object(
  {
    key: string({ description: 'Key of the label.', minLength: 1, maxLength: LONGEST_LABEL_KEY }),
    operator: oneOf(['In', 'NotIn', 'Exists', 'DoesNotExist'], { description: 'How the label is compared.' }),
    values: optional(list(labelValue, { description: 'For In and NotIn.', as: 'set', maxItems: 64 })),
  },
  { rules: requirementRules },
);

/** metav1.LabelSelector; empty: everything. */
export const labelSelector = (description: string) =>
  object(
    {
      matchLabels: optional(map(labelValue, { description: 'Labels that must all be there.', maxProperties: 32 })),
      matchExpressions: optional(
        list(requirement, { description: 'Requirements that must all be met.', as: 'atomic', maxItems: 32 }),
      ),
    },
    { description },
  );
export type LabelSelector = Infer<ReturnType<typeof labelSelector>>;

const addressRules: readonly CelRule[] = [
  {
    rule: 'isIP(self)',
    message: 'must be an IP address: write it like 192.0.2.1 or 2001:db8::1',
    messageExpression: `'"' + self + '" is not an IP address: write it like 192.0.2.1 or 2001:db8::1'`,
  },
];

const unicastRule: CelRule = {
  rule: `!isIP(self) || (ip(self).isGlobalUnicast() && !self.startsWith('0.'))`,
  message: 'must be a unicast address, no loopback, link-local, multicast or unspecified one',
  messageExpression: `'"' + self + '" is a loopback, link-local, multicast or unspecified address: write a unicast address like 192.0.2.1'`,
};

/** Any address, link-local ones too: a router's may be. */
export const address = (description: string): Schema<string> =>
  string({ description, maxLength: LONGEST_ADDRESS, rules: addressRules });
/** An address that others route to. */
export const unicastAddress = (description: string): Schema<string> =>
  string({ description, maxLength: LONGEST_ADDRESS, rules: [...addressRules, unicastRule] });

/** What an agent or controller of ours writes; not checked again. */
export const addressText = (description: string): Schema<string> => string({ description, maxLength: LONGEST_ADDRESS });

const ADDRESS_SOURCES = 'must have exactly one of egressip, egressips and pool';
/** CEL cannot tell families of addresses that are none; the rules of the fields report those. */
const isOtherFamily = (text: string): string =>
  `isIP(${text}) && isCIDR(self.cidr) && ip(${text}).family() != cidr(self.cidr).ip().family()`;

/** Where the addresses of a rule come from, and that they can serve its destination. */
export const ruleAddressRules: readonly CelRule[] = [
  {
    rule: '[has(self.egressip), has(self.egressips), has(self.pool)].exists_one(given, given)',
    message: `${ADDRESS_SOURCES}: an address like 192.0.2.1, a list of them, or the name of an EgressIPPool`,
  },
  {
    rule: '!has(self.addresses) || has(self.pool)',
    message: 'addresses is a number of addresses of a pool: name the EgressIPPool in pool, or leave addresses out',
    fieldPath: '.addresses',
  },
  {
    rule: `!has(self.cidr) || !has(self.egressip) || !(${isOtherFamily('self.egressip')})`,
    message: 'cidr must be of the same IP family as egressip',
    messageExpression: `'cidr "' + self.cidr + '" and egressip "' + self.egressip + '" must be of the same IP family'`,
    fieldPath: '.cidr',
  },
  {
    rule: `!has(self.cidr) || !has(self.egressips) || !self.egressips.all(a, ${isOtherFamily('a')})`,
    message: 'egressips must hold an address of the IP family of cidr',
    messageExpression: `'egressips must hold an address of the IP family of cidr "' + self.cidr + '"'`,
    fieldPath: '.egressips',
  },
];

/** What rules of both kinds have; {@link ruleAddressRules} says which fields exclude each other. */
export const ruleFields = {
  egressip: optional(unicastAddress('The address that the pods leave with.')),
  egressips: optional(
    list(unicastAddress('192.0.2.1 or 2001:db8::1'), {
      description: 'Several addresses, of one family or both; a pod keeps one of each family.',
      as: 'set',
      minItems: 1,
      maxItems: 16,
    }),
  ),
  cidr: optional(cidr('Destination; absent: everything outside of the cluster, in both families.')),
  except: optional(
    list(cidr('192.0.2.0/24 or 2001:db8::/32'), {
      description: 'Destinations that the rule leaves to the next rule, or to the address of the node.',
      as: 'set',
      maxItems: 64,
    }),
  ),
  whenUnavailable: optional(
    oneOf(['Drop', 'Node'], {
      description:
        'While no node owns the address that the rule has; without an address packets are dropped. Drop: packets are dropped. Node: they leave with the address of the pod’s node.',
    }),
    'Drop' as const,
  ),
  pool: optional(objectName('The EgressIPPool that addresses are allocated from.')),
};
