import type { ClusterStaticEgressIP, ClusterStaticEgressRule, StaticEgressIP, StaticEgressRule } from '@unbounded/crds';
import { type Family, parsePrefix, type Prefix, tryParseAddress, tryParsePrefix } from '@unbounded/ip';

import { countedEpoch } from '../owners/epochs.ts';
import type { EgressProblem } from '../problem.ts';
import { fingerprint } from '../rendezvous.ts';
import type { AddressSource, PodSelection, Rule, RuleObject } from './rule.ts';

const EVERYTHING: readonly Prefix[] = ['0.0.0.0/0', '::/0'].map(parsePrefix);

type AnyRule = StaticEgressRule | ClusterStaticEgressRule;

export interface ParsedRules {
  readonly object: RuleObject;
  readonly rules: readonly Rule[];
  readonly problems: readonly EgressProblem[];
}

const accepted = (problem: Omit<EgressProblem, 'condition'>): EgressProblem => ({ condition: 'Accepted', ...problem });

const objectOf = ({ kind, metadata, status }: StaticEgressIP | ClusterStaticEgressIP): RuleObject => {
  const namespace = kind === 'StaticEgressIP' ? (metadata.namespace ?? 'default') : undefined;
  return {
    kind,
    namespace,
    name: metadata.name,
    key: [kind, ...(namespace === undefined ? [] : [namespace]), metadata.name].join('/'),
    createdAt: metadata.creationTimestamp ?? '',
    assigned: (status?.addresses ?? []).map((entry) => ({ ...entry, epoch: countedEpoch(entry.epoch) })),
  };
};

/** Which pods a rule covers, as it stands in its object. */
export const selectionOf = (rule: AnyRule): PodSelection => {
  if ('namespaceSelector' in rule) {
    return { by: 'labels', namespaces: rule.namespaceSelector, pods: rule.podSelector ?? {} };
  }
  const service = 'service-name' in rule ? rule['service-name'] : undefined;
  if ((service === undefined) === (rule.podSelector === undefined)) return { by: 'nothing' };
  return service === undefined ? { by: 'labels', pods: rule.podSelector! } : { by: 'service', service };
};

const selectionProblems = (rule: AnyRule, path: string): EgressProblem[] =>
  selectionOf(rule).by === 'nothing'
    ? [
        accepted({
          reason: 'InvalidSelection',
          field: `${path}.service-name`,
          value: ('service-name' in rule ? rule['service-name'] : undefined) ?? '',
          remedy: 'must be the name of a Service, or podSelector must be given instead of it',
        }),
      ]
    : [];

const sourceOf = ({ egressip, egressips, pool, addresses = 1 }: AnyRule): AddressSource => {
  if (pool !== undefined) return { field: 'pool', pool, count: addresses };
  const texts = egressip === undefined ? (egressips ?? []) : [egressip];
  const parsed = texts.flatMap((text) => tryParseAddress(text) ?? []);
  return { field: egressip === undefined ? 'egressips' : 'egressip', addresses: parsed };
};

const sourceProblems = ({ egressip, egressips = [], pool }: AnyRule, path: string): EgressProblem[] => {
  const texts = [
    ...(egressip === undefined ? [] : [['egressip', egressip] as const]),
    ...egressips.map((text, index) => [`egressips[${index}]`, text] as const),
  ];
  const wrong = texts
    .filter(([, text]) => !tryParseAddress(text))
    .map(([field, value]) =>
      accepted({
        reason: 'InvalidAddress',
        field: `${path}.${field}`,
        value,
        remedy: 'must be an IP address: write it like 192.0.2.1 or 2001:db8::1',
      }),
    );
  const given = [egressip, egressips[0], pool].filter((text) => text !== undefined);
  if (given.length === 1) return wrong;
  const remedy = 'exactly one of egressip, egressips and pool must be given';
  return [...wrong, accepted({ reason: 'InvalidAddressSource', field: path, value: given.join(), remedy })];
};

const destinationProblems = ({ cidr, except = [] }: AnyRule, path: string): EgressProblem[] => {
  const texts = [
    ...(cidr === undefined ? [] : [['cidr', cidr] as const]),
    ...except.map((text, index) => [`except[${index}]`, text] as const),
  ];
  return texts
    .filter(([, text]) => !tryParsePrefix(text))
    .map(([field, value]) =>
      accepted({
        reason: 'InvalidDestination',
        field: `${path}.${field}`,
        value,
        remedy: 'must be an address block without host bits, like 198.51.100.0/24',
      }),
    );
};

/** What cannot be read as a destination covers everything, so that nothing leaves with another address. */
const destinationOf = ({ cidr, except = [] }: AnyRule) => {
  const parsed = cidr === undefined ? undefined : tryParsePrefix(cidr);
  const destinations = parsed ? [parsed] : EVERYTHING;
  const excepted = except.flatMap((text) => tryParsePrefix(text) ?? []);
  const families: readonly Family[] = destinations.map(({ family }) => family);
  return { cidr: parsed, destinations, except: excepted, families };
};

const parseRule = (object: RuleObject, rule: AnyRule, index: number): Rule => {
  const selection = selectionOf(rule);
  const destination = destinationOf(rule);
  const isUnreadable = rule.cidr !== undefined && destination.cidr === undefined;
  const source = sourceOf(rule);
  return {
    object,
    index,
    key: `${object.key}/${index}`,
    path: `spec.rules[${index}]`,
    selection,
    selectionPrint: fingerprint(JSON.stringify([selection, rule.cidr ?? ''])),
    ...destination,
    priority: rule.priority ?? 100,
    // Without a destination to check them against, addresses are not used: the pods are dropped.
    source: isUnreadable ? { field: 'egressips', addresses: [] } : source,
    whenUnavailable: rule.whenUnavailable ?? 'Drop',
  };
};

/** The rules of one object, and what is wrong with what they say; a wrong rule still covers its pods, and drops what they send. */
export const parseRules = (egress: StaticEgressIP | ClusterStaticEgressIP): ParsedRules => {
  const object = objectOf(egress);
  const rules: readonly AnyRule[] = egress.spec.rules;
  return {
    object,
    rules: rules.map((rule, index) => parseRule(object, rule, index)),
    problems: rules.flatMap((rule, index) => {
      const path = `spec.rules[${index}]`;
      return [...selectionProblems(rule, path), ...sourceProblems(rule, path), ...destinationProblems(rule, path)];
    }),
  };
};
