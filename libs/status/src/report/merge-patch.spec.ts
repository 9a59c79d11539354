import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyMergePatch, createMergePatch, type Json, type JsonObject } from './merge-patch.ts';

describe('JSON Merge Patch', () => {
  /** Appendix A of RFC 7396. */
  it.each<[Json, Json, Json]>([
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ a: 'foo' }, 'bar', 'bar'],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])('%j patched with %j is %j', (target, patch, result) => {
    expect(applyMergePatch(target, patch)).toEqual(result);
  });

  const document: fc.Arbitrary<JsonObject> = fc.letrec<{ value: Json; object: JsonObject }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.integer(),
      fc.string(),
      fc.boolean(),
      fc.array(fc.integer(), { maxLength: 3 }),
      tie('object'),
    ),
    object: fc.dictionary(fc.oneof(fc.constantFrom('a', 'b', '__proto__', 'constructor'), fc.string()), tie('value'), {
      maxKeys: 5,
    }),
  })).object;

  it('of two documents leads from one to the other, whatever their members are called', () => {
    fc.assert(
      fc.property(document, document, (before, after) => {
        const patch = createMergePatch(before, after);
        const text = JSON.stringify(
          patch === undefined ? before : applyMergePatch(before, JSON.parse(JSON.stringify(patch)) as Json),
        );
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(after)));
      }),
    );
  });

  it('of a document with itself is nothing', () => {
    fc.assert(
      fc.property(document, (one) => {
        expect(createMergePatch(one, structuredClone(one))).toBeUndefined();
      }),
    );
  });

  it('changes no prototype', () => {
    const patched = applyMergePatch({}, JSON.parse('{"__proto__": {"polluted": true}}') as Json);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    expect(Object.getPrototypeOf(patched)).toBe(Object.prototype);
    expect(Object.hasOwn(patched as object, '__proto__')).toBe(true);
  });
});
