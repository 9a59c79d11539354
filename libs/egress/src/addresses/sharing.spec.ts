import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type EgressSnapshot, planEgress } from '../index.ts';
import { anySnapshot } from '../random-egress.testdata.ts';
import { clusterEgress, pod, snapshot, staticEgress, withConfirmations, written } from '../testdata.ts';

/** Who may leave with an address that several rules name. */

const ADDRESS = '192.0.2.100';
const rule = { podSelector: {}, egressip: ADDRESS } as const;
const OLD = '2020-01-01T00:00:00Z';
const shop = staticEgress([rule], { creationTimestamp: '2026-01-01T00:00:00Z' });
const evil = (creationTimestamp: string) =>
  staticEgress([rule], { name: 'grab', namespace: 'evil', creationTimestamp });
const YOUNG = '2026-01-02T00:00:00Z';
const namespaces = ['shop', 'evil'].map((name) => ({ name, labels: {} }));
const pods = [pod(1), pod(9, { namespace: 'evil' })];
const settled = (given: EgressSnapshot): EgressSnapshot => withConfirmations(written(given, planEgress(given)));
const start = (rest: Partial<EgressSnapshot>): EgressSnapshot => snapshot({ namespaces, pods, ...rest });
const OF_SHOP = 'StaticEgressIP/shop/partner';
const OF_EVIL = 'StaticEgressIP/evil/grab';
const OF_CLUSTER = 'ClusterStaticEgressIP/all';
/** Those whose rules have the address, and the message of those that are refused. */
const holders = (given: EgressSnapshot) =>
  [...planEgress(given).ruleStatuses].flatMap(([key, { addresses }]) => (addresses.length > 0 ? [key] : []));
const acceptedOf = (given: EgressSnapshot, key: string) =>
  planEgress(given)
    .ruleStatuses.get(key)!
    .conditions.find(({ type }) => type === 'Accepted')!;

test('an address that a rule of one namespace has is refused to another namespace, whose pods send nothing', () => {
  const given = start({ rules: [shop, evil(YOUNG)] });
  expect(holders(given)).toEqual([OF_SHOP]);
  expect(acceptedOf(given, OF_EVIL)).toMatchObject({
    status: 'False',
    reason: 'AddressInUse',
    message:
      'spec.rules[0].egressip "192.0.2.100": is the address of StaticEgressIP/shop/partner, which is of another namespace: take another address, or one ClusterStaticEgressIP for several namespaces',
  });
  const [route] = planEgress(given).routedPods.get('uid-p9')!.routes;
  expect(route!.route).toMatchObject({ whenUnavailable: 'Drop' });
  expect(route!.route.egress).toBeUndefined();
});

test('one that has it keeps it, however old the other object is; of two that are new the older one gets it', () => {
  const before = settled(start({ rules: [shop] }));
  expect(holders({ ...before, rules: [...before.rules, evil(OLD)] })).toEqual([OF_SHOP]);
  expect(holders(start({ rules: [shop, evil(OLD)] }))).toEqual([OF_EVIL]);
});

test('when its holder goes another namespace gets it', () => {
  const before = settled(start({ rules: [shop, evil(YOUNG)] }));
  expect(holders({ ...before, rules: before.rules.filter(({ metadata }) => metadata.name !== 'partner') })).toEqual([
    OF_EVIL,
  ]);
});

test('rules of one namespace share an address, and so do those of the cluster', () => {
  const second = staticEgress([rule, { ...rule, cidr: '198.51.100.0/24' }], { name: 'second' });
  expect(holders(start({ rules: [shop, second] }))).toEqual([OF_SHOP, 'StaticEgressIP/shop/second']);
  const ofAll = { egressip: ADDRESS, namespaceSelector: {} };
  const clusterRules = ['all', 'more'].map((name) => clusterEgress([ofAll], { name }));
  expect(holders(start({ clusterRules })).length).toBe(2);
});

test('a rule of the cluster and one of a namespace do not share: one that has it keeps it, else it is the cluster’s', () => {
  const clusterRules = [clusterEgress([{ egressip: ADDRESS, namespaceSelector: {} }], { creationTimestamp: YOUNG })];
  expect(holders(start({ rules: [shop], clusterRules }))).toEqual([OF_CLUSTER]);
  expect(acceptedOf(start({ rules: [shop], clusterRules }), OF_SHOP).message).toContain(
    'is the address of ClusterStaticEgressIP/all, which rules of namespaces cannot share: take another address',
  );
  const before = settled(start({ rules: [shop] }));
  expect(holders({ ...before, clusterRules })).toEqual([OF_SHOP]);
  expect(acceptedOf({ ...before, clusterRules }, OF_CLUSTER)).toMatchObject({
    reason: 'AddressInUse',
    message: expect.stringContaining(
      'is the address of StaticEgressIP/shop/partner, which is of one namespace: take another',
    ),
  });
});

test('a rule that could not use the address does not keep it from others', () => {
  const unreadable = staticEgress([{ ...rule, cidr: 'nonsense' }], { creationTimestamp: OLD });
  expect(holders(start({ rules: [unreadable, evil(YOUNG)] }))).toEqual([OF_EVIL]);
});

test('no two namespaces leave with one address, whatever the rules are', () => {
  fc.assert(
    fc.property(anySnapshot, (given) => {
      const once = settled(given);
      for (const snapshot of [given, once]) {
        const owners = new Map<string, Set<string>>();
        for (const [key, { addresses }] of planEgress(snapshot).ruleStatuses) {
          const who = key.startsWith('Cluster') ? 'cluster' : key.split('/')[1]!;
          for (const { address } of addresses) owners.set(address, (owners.get(address) ?? new Set()).add(who));
        }
        for (const names of owners.values()) expect(names.size).toBe(1);
      }
    }),
  );
});
