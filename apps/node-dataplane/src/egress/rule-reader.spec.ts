import type { KubeObject } from '@unbounded/kube';
import { beforeEach, expect, test } from 'vitest';
import { createRuleReader, type ReadRules } from './rule-reader.ts';

interface Rule extends KubeObject {
  readonly spec: string;
}

let stored: Map<string, Rule[]>;
let asked: string[];
let nowMs: number;
let read: ReadRules<Rule>;
const rule = (name: string, generation = 1, spec = 'a'): Rule => ({
  metadata: { name, namespace: 'shop', uid: `uid-${name}`, generation, resourceVersion: '7' },
  spec,
});
beforeEach(() => {
  stored = new Map([['shop', [rule('x'), rule('y')]]]);
  [asked, nowMs] = [[], 0];
  const answer =
    (what: string) =>
    async ({ namespace = '' } = {}) => {
      asked.push(`${what} ${namespace}`);
      return stored.get(namespace) ?? [];
    };
  read = createRuleReader<Rule>(
    { listAll: answer('all'), listMetadata: answer('metadata') },
    { most: 3, now: () => nowMs },
  );
});
const specs = async (namespace = 'shop'): Promise<string> =>
  (await read(namespace)).map(({ metadata, spec }) => `${metadata.name}${spec}`).join(' ');

test('rules that are as they were are not sent again', async () => {
  expect([await specs(), await specs(), asked]).toEqual(['xa ya', 'xa ya', ['all shop', 'metadata shop']]);
});

test.each<[string, Rule[], string]>([
  ['one that was changed', [rule('x'), rule('y', 2, 'b')], 'xa yb'],
  ['one more', [rule('x'), rule('y'), rule('z')], 'xa ya za'],
  ['one that is gone', [rule('y')], 'ya'],
  [
    'one that was made anew by the same name',
    [rule('x'), { ...rule('y', 1, 'c'), metadata: { ...rule('y').metadata, uid: 'other' } }],
    'xa yc',
  ],
  ['one in the place of another', [rule('x'), rule('z')], 'xa za'],
  ['none', [], ''],
])('%s is heeded with the next question', async (_, next, found) => {
  await specs();
  stored.set('shop', next);
  expect([await specs(), await specs()]).toEqual([found, found]);
});

test('an object without a generation is read each time', async () => {
  const { generation: _, ...metadata } = rule('x').metadata;
  stored.set('shop', [{ metadata, spec: 'a' }]);
  await specs();
  stored.set('shop', [{ metadata, spec: 'b' }]);
  expect(await specs()).toBe('xb');
});

test('after a minute all is read again: generations of a restored API server may be others’', async () => {
  await specs();
  stored.set('shop', [rule('x', 1, 'restored'), rule('y')]);
  nowMs = 59_999;
  expect(await specs()).toBe('xa ya');
  nowMs = 60_000;
  expect(await specs()).toBe('xrestored ya');
});

test('what is kept is bounded: of the namespace that was read longest ago nothing is', async () => {
  stored.set('other', [rule('v'), rule('w')]);
  stored.set(
    'many',
    ['a', 'b', 'c', 'd'].map((name) => rule(name)),
  );
  for (const namespace of ['shop', 'other', 'many', 'shop', 'many', 'other']) await specs(namespace);
  expect(asked).toEqual(['all shop', 'all other', 'all many', 'all shop', 'all many', 'all other']);
});

test('what the API server refuses is told, and nothing that was kept counts then', async () => {
  await specs();
  const away = async (): Promise<never> => Promise.reject(new Error('away'));
  const reader = createRuleReader<Rule>({ listAll: async () => [rule('x')], listMetadata: away });
  expect(await reader('shop')).toHaveLength(1);
  await expect(reader('shop')).rejects.toThrow('away');
});
