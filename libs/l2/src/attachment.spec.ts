import type { LabelSelector } from '@unbounded/crds';
import { expect, it } from 'vitest';
import { attachmentOf } from './index.ts';
import { network } from './testdata.ts';

const team = (operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist', ...values: string[]): LabelSelector => ({
  matchExpressions: [{ key: 'team', operator, ...(values.length > 0 ? { values } : {}) }],
});
const SHOP = { team: 'shop', constructor: 'x' };

it.each<[LabelSelector, Record<string, string>, boolean]>([
  [{}, {}, true],
  [{ matchLabels: { team: 'shop' } }, SHOP, true],
  [{ matchLabels: { team: 'shop' } }, { team: 'bank' }, false],
  [{ matchLabels: { toString: 'x' } }, {}, false],
  [team('In', 'bank', 'shop'), SHOP, true],
  [team('In', 'bank'), SHOP, false],
  [team('In', 'bank'), {}, false],
  [team('NotIn', 'bank'), SHOP, true],
  [team('NotIn', 'shop'), SHOP, false],
  [team('NotIn', 'shop'), {}, true],
  [team('Exists'), SHOP, true],
  [team('Exists'), {}, false],
  [team('DoesNotExist'), {}, true],
  [team('DoesNotExist'), SHOP, false],
  [{ matchLabels: { team: 'shop' }, ...team('NotIn', 'shop') }, SHOP, false],
])('%j and the labels %j: may attach is %s', (namespaceSelector, labels, mayAttach) => {
  expect(attachmentOf(network('lan', { namespaceSelector }), labels)).toEqual({ mayAttach, isTrusted: false });
});

it('trusts nobody unless somebody is named, and nobody who may not attach', () => {
  const trusts = (namespaceSelector: LabelSelector, trustedNamespaceSelector: LabelSelector) =>
    attachmentOf(network('lan', { namespaceSelector, trustedNamespaceSelector }), SHOP).isTrusted;
  expect(trusts({}, {})).toBe(true);
  expect(trusts({}, team('In', 'shop'))).toBe(true);
  expect(trusts({}, team('In', 'network'))).toBe(false);
  expect(trusts(team('In', 'bank'), {})).toBe(false);
});
