import { matchesLabels } from '@unbounded/label-selector';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { pod } from '../testdata.ts';
import { indexPods } from './labelled-pods.ts';

const name = fc.constantFrom('a', 'b');
const labels = fc.dictionary(name, name);
const pods = fc.array(fc.record({ namespace: name, labels })).map((all) => all.map((one, index) => pod(index, one)));
const expression = fc.record({ key: name, operator: fc.constantFrom('Exists' as const, 'DoesNotExist' as const) });
const selector = fc.record(
  { matchLabels: labels, matchExpressions: fc.array(expression, { maxLength: 1 }) },
  { requiredKeys: [] },
);

test('found by an index are the pods of the namespace that the selector matches, in their order', () => {
  fc.assert(
    fc.property(pods, name, selector, (all, namespace, wanted) => {
      const matching = all.filter((one) => one.namespace === namespace && matchesLabels(wanted, one.labels));
      expect(indexPods(all).select(namespace, wanted)).toEqual(matching);
    }),
  );
});

test('without a selector all pods of the namespace are found', () => {
  expect(indexPods([pod(1, { namespace: 'a' }), pod(2, { namespace: 'b' })]).select('a', undefined)).toHaveLength(1);
});
