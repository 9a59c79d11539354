import type { NodeReport } from '@unbounded/status';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Refusal } from './refusal.ts';
import { MOST_NAMES, namesOf, reportedNodes } from './reported-nodes.ts';

interface Answer {
  readonly nodes: Record<string, { readonly report: { readonly name: string }; readonly ageMs: number }>;
  readonly left: readonly string[];
}

const reportsOf = (texts: Readonly<Record<string, string>>) => ({
  report: (name: string) =>
    Object.hasOwn(texts, name) ? { report: { name, text: texts[name] } as unknown as NodeReport, ageMs: 7 } : undefined,
});

const answer = (texts: Readonly<Record<string, string>>, names: readonly string[], mostBytes?: number): Answer =>
  JSON.parse(reportedNodes(reportsOf(texts), names, mostBytes).toString()) as Answer;

describe('names of a query', () => {
  test('each once, in their order', () => {
    expect(namesOf('b,a.example,b')).toEqual(['b', 'a.example']);
    expect(namesOf(Array.from({ length: MOST_NAMES }, (_, index) => `n${index}`).join(','))).toHaveLength(MOST_NAMES);
  });

  test.each([
    ['none', undefined],
    ['an empty one', ''],
    ['one that is no name', 'a,B'],
    ['an end without a name', 'a,'],
    ['the query twice', ['a', 'b']],
    ['an object', { a: 'b' }],
    ['too many', Array.from({ length: MOST_NAMES + 1 }, (_, index) => `n${index}`).join(',')],
    ['one name too often', 'a,'.repeat(100_000)],
  ])('refused: %s', (_, query) => {
    expect(() => namesOf(query)).toThrow(Refusal);
  });
});

describe('reports of nodes', () => {
  test('of those that have reported, whatever their names', () => {
    const texts = { n1: 'ä', constructor: 'b' };
    expect(answer(texts, ['n1', 'n2', 'constructor', 'valueof'])).toEqual({
      nodes: {
        n1: { report: { name: 'n1', text: 'ä' }, ageMs: 7 },
        constructor: { report: { name: 'constructor', text: 'b' }, ageMs: 7 },
      },
      left: [],
    });
  });

  test('one that alone is too large is answered, and the others are left', () => {
    const texts = { n1: 'x'.repeat(200), n2: '' };
    expect(answer(texts, ['n0', 'n1', 'n2'], 100)).toMatchObject({ nodes: { n1: { ageMs: 7 } }, left: ['n2'] });
  });

  test('who asks for what is left until nothing is has all of them, each once, and only one node is ever above the bound', () => {
    const nodes = fc.array(fc.tuple(fc.nat(300), fc.boolean()), { maxLength: MOST_NAMES });
    fc.assert(
      fc.property(nodes, fc.nat(600), (each, mostBytes) => {
        const all = each.map((_, index) => `n${index}`);
        const texts = Object.fromEntries(
          each.flatMap(([size, isKnown], index) => (isKnown ? [[all[index]!, 'y'.repeat(size)]] : [])),
        );
        const seen: string[] = [];
        let left: readonly string[] = all;
        for (let turn = 0; left.length > 0; turn++) {
          expect(turn).toBeLessThan(all.length);
          const one = answer(texts, left, mostBytes);
          const members = Object.entries(one.nodes).map(([name, node]) => `"${name}":${JSON.stringify(node)}`);
          if (members.length > 1) expect(members.join('').length).toBeLessThanOrEqual(mostBytes);
          seen.push(...Object.keys(one.nodes));
          left = one.left;
        }
        expect(seen).toEqual(all.filter((name) => Object.hasOwn(texts, name)));
      }),
    );
  });
});
