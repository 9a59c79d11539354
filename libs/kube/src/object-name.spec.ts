import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isObjectName, pathSegment } from './object-name.ts';

const pathOf = (...segments: readonly string[]): string[] =>
  new URL(`/api/v1/namespaces/${segments.map(pathSegment).join('/pods/')}?watch=false`, 'https://api').pathname.split(
    '/',
  );

test.each(['shop', 'n1', '10-0-0-1.lab', 'a'.repeat(253)])('an object can have the name %j', (name) => {
  expect(isObjectName(name)).toBe(true);
  expect(pathSegment(name)).toBe(name);
});

test.each(['', '.', '..', '-a', 'a-', 'A', 'a/b', 'a\\b', '%zz', 'a b', 'a\n', 'a?x=y', 'a'.repeat(254)])(
  'no object has the name %j',
  (name) => expect(isObjectName(name)).toBe(false),
);

test.each(['', '.', '..'])('%j is refused as a segment of a path', (name) =>
  expect(() => pathSegment(name)).toThrow(`"${name}" is the name of no object`),
);

test.each(['..\\..\\nodes?watch=true&a=', '../../nodes', '%2e%2e', '%zz', 'a#b', 'a?b', '\\', 'a\tb'])(
  'the path of %j has as many segments as that of any other name',
  (name) => expect(pathOf(name, 'p')).toHaveLength(pathOf('shop', 'p').length),
);

test('whatever a name holds, the path around it stays', () =>
  fc.assert(
    fc.property(fc.string({ minLength: 1, unit: 'binary' }), fc.string({ minLength: 1 }), (namespace, name) => {
      fc.pre(![namespace, name].some((text) => text === '.' || text === '..'));
      expect(pathOf(namespace, name)).toEqual([
        '',
        'api',
        'v1',
        'namespaces',
        expect.any(String),
        'pods',
        expect.any(String),
      ]);
    }),
  ));
