import { GROUP_VERSION, type StaticEgressIP } from '@unbounded/crds';
import type { Node } from '@unbounded/kube';
import { expect, test } from 'vitest';

import { explanationText } from './explanation-text.ts';
import { recordedOwners } from './recorded-owners.ts';

test('an explanation has a line for each thing that is known', () => {
  const passedOver = [{ rule: 'StaticEgressIP/shop/b/0', reason: 'another rule takes precedence' }];
  const rule = 'StaticEgressIP/shop/a/0';
  const reason = 'no node owns 192.0.2.9 at present, and whenUnavailable is Drop';
  expect(explanationText({ verdict: 'Dropped', rule, address: '192.0.2.9', reason, passedOver })).toBe(
    [
      'verdict:  is dropped',
      'rule:     StaticEgressIP/shop/a/0',
      'address:  192.0.2.9',
      'reason:   no node owns 192.0.2.9 at present, and whenUnavailable is Drop',
      'not used: StaticEgressIP/shop/b/0: another rule takes precedence',
      '',
    ].join('\n'),
  );
});

test('as alive count the nodes that the statuses of rules name', () => {
  const node = (name: string) => ({ metadata: { name, uid: `uid-${name}` } }) as Node;
  const rule: StaticEgressIP = {
    apiVersion: GROUP_VERSION,
    kind: 'StaticEgressIP',
    metadata: { name: 'a', namespace: 'shop' },
    spec: { rules: [] },
    status: { addresses: [{ address: '192.0.2.9', rule: 0, selection: '', node: 'n1' }] },
  };
  expect(recordedOwners({ rules: [rule], clusterRules: [], nodes: [node('n1'), node('n2')] })).toEqual(
    new Set(['uid-n1']),
  );
});
