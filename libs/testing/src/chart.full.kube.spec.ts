import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiServer, borrowApiServer } from './index.ts';
import { isKind, namespaceFile, renderChartOnce, renderText, yamlOf } from './chart.ts';
import { aroundLeaf, leaves, merged, nested, only, othersTogether, WITHOUT_EFFECT } from './chart-leaves.ts';
import { type Refusals, refusalsOf, refusedOf } from './chart-refusals.ts';
import { alone, apps, without } from './chart-subsets.ts';
import { enabledParts, renderVariants, type Variant } from './chart-variants.ts';

/** What chart.kube.spec.ts leaves out: each program alone, and each value. */

describe('the API server', () => {
  let api: ApiServer;
  let refusals: Refusals;
  const rendered = (values: object) => renderChartOnce({ values });
  beforeAll(async () => {
    api = await borrowApiServer();
    api.kubectl('apply', '-f', namespaceFile);
    api.apply(yamlOf(rendered({}).filter(isKind)), '--server-side');
    refusals = refusalsOf(api, apps.flatMap((name) => [alone(name), without(name)]).map(rendered));
  });
  afterAll(() => api?.stop());

  test.each(apps)('takes %s alone, and everything without it', (name) => {
    const refused = (values: object): string[] => refusedOf(refusals, rendered(values));
    expect([...refused(alone(name)), ...refused(without(name))]).toEqual([]);
  });
});

test('every value does something: another one gives another rendering', () => {
  const before = new Map<string, Variant>();
  const pairs = leaves.map((leaf) => {
    const around = aroundLeaf(leaf);
    const key = JSON.stringify(around);
    const parts = enabledParts(around);
    before.set(key, before.get(key) ?? { values: around, parts });
    const after: Variant = { values: merged(around, nested(leaf.path, leaf.other)), parts };
    return { leaf, before: before.get(key)!, after };
  });
  const texts = renderVariants([...before.values(), ...pairs.map(({ after }) => after)]);
  const same = pairs.filter((pair) => texts.get(pair.before) === texts.get(pair.after));
  expect(leaves.length).toBeGreaterThan(250);
  expect(same.map(({ leaf }) => leaf.path.join('.'))).toEqual([...WITHOUT_EFFECT.keys()]);
});

test('the schema takes every other value', () => {
  for (const values of othersTogether()) expect(() => renderText({ values })).not.toThrow();
});

test('a rendering among many has the objects of one of its own', () => {
  const documents = (text: string): string[] =>
    text
      .split(/^---$/m)
      .map((document) => document.replace(/^# Source: .*$/m, '').trim())
      .filter((document) => document !== '')
      .toSorted();
  const variants: Variant[] = [
    { values: only('global'), parts: ['relay'] },
    { values: merged(only('cidr-allocator'), { 'cidr-allocator': { replicas: 7 } }), parts: ['cidr-allocator'] },
    {
      values: merged(alone('tailnet'), { global: { tailnet: { caBundle: 'x' } } }),
      parts: ['relay', 'tailnet', 'tailnet-registrar'],
    },
  ];
  const texts = renderVariants(variants);
  for (const variant of variants) expect(documents(texts.get(variant)!)).toEqual(documents(renderText(variant)));
});
