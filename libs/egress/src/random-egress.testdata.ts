import type { StaticEgressRule } from '@unbounded/crds';
import fc from 'fast-check';

import type { EgressSnapshot } from './snapshot.ts';
import { clusterEgress, egressPool, node, pod, snapshot, staticEgress } from './testdata.ts';

/** Snapshots of any shape, for property tests. */

const selector = fc.constantFrom({}, { matchLabels: { app: 'web' } }, { matchLabels: { app: 'db' } });
const source = fc.constantFrom<Partial<StaticEgressRule>>(
  { pool: 'public', addresses: 2 },
  { pool: 'routed' },
  { pool: 'nowhere' },
  { egressip: '192.0.2.200' },
  { egressip: '192.0.2.1' },
  { egressips: ['192.0.2.201', '192.0.2.202', '2001:db8::201'] },
);
const destination = fc.constantFrom<Partial<StaticEgressRule>>(
  {},
  { cidr: '198.51.100.0/24' },
  { cidr: '198.51.0.0/16', except: ['198.51.100.0/24'] },
  { cidr: '2001:db8:9::/48' },
);
const rule = fc
  .tuple(selector, source, destination, fc.constantFrom(1, 100, undefined), fc.constantFrom('Drop', 'Node', undefined))
  .map(([podSelector, from, to, priority, whenUnavailable]) => {
    const rest = { ...(priority !== undefined && { priority }), ...(whenUnavailable && { whenUnavailable }) };
    return { podSelector, ...from, ...to, ...rest };
  });
const rules = fc.array(rule, { minLength: 1, maxLength: 4 });

const objects = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom('a', 'b', 'c'),
    namespace: fc.constantFrom('shop', 'bank'),
    rules,
    day: fc.integer({ min: 1, max: 3 }),
  }),
  { selector: ({ name, namespace }) => `${namespace}/${name}`, maxLength: 6 },
);

const pods = fc.array(
  fc.record({
    namespace: fc.constantFrom('shop', 'bank'),
    node: fc.constantFrom('n1', 'n2', 'n3', 'n4'),
    labels: fc.constantFrom({ app: 'web' }, { app: 'db' }, {}),
    isHostNetwork: fc.constantFrom(false, false, false, true),
  }),
  { maxLength: 20 },
);

export const anySnapshot: fc.Arbitrary<EgressSnapshot> = fc
  .record({ objects, clusterRules: rules, hasClusterRules: fc.boolean(), pods, dead: fc.integer({ min: 1, max: 8 }) })
  .map(({ objects, clusterRules, hasClusterRules, pods, dead }) =>
    snapshot({
      nodes: [1, 2, 3, 4].map((number) => node(number, { isAlive: number !== dead })),
      rules: objects.map(({ name, namespace, rules, day }) =>
        staticEgress(rules, { name, namespace, creationTimestamp: `2026-01-0${day}T00:00:00Z` }),
      ),
      clusterRules: hasClusterRules
        ? [clusterEgress(clusterRules.map((one) => ({ ...one, namespaceSelector: { matchLabels: { team: 'shop' } } })))]
        : [],
      pools: [
        egressPool({ blocks: ['192.0.2.96/29', '2001:db8::100/126'] }),
        egressPool({ blocks: ['203.0.113.0/29'], announce: 'None' }, { name: 'routed' }),
      ],
      pods: pods.map((rest, index) => pod(index, rest)),
      namespaces: [
        { name: 'shop', labels: { team: 'shop' } },
        { name: 'bank', labels: {} },
      ],
    }),
  );
