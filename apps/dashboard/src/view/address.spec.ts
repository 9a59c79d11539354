import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatAddress, hrefOf, parseAddress, withQuery } from './address.ts';

const text = fc.string({ unit: 'grapheme', minLength: 1 });

test('an address is read back as it was written, whatever names are in it', () => {
  fc.assert(
    fc.property(fc.array(text), fc.dictionary(text, text), (path, query) => {
      const address = { path, query: { ...query } };
      expect(parseAddress(formatAddress(address))).toEqual(address);
    }),
  );
});

test('any text is some address', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (hash) => {
      const address = parseAddress(hash);
      expect(parseAddress(formatAddress(address))).toEqual(
        parseAddress(formatAddress(parseAddress(formatAddress(address)))),
      );
    }),
  );
});

test.each([
  ['', [], {}],
  ['#/', [], {}],
  ['#/nodes/a.b', ['nodes', 'a.b'], {}],
  ['#/nodes?q=a+b&site=&=x&sort=-rtt', ['nodes'], { q: 'a b', sort: '-rtt' }],
  ['#/x?q=%', ['x'], { q: '%' }],
  ['#/matrix?from=a=b', ['matrix'], { from: 'a=b' }],
])('%j is path %j and query %j', (hash, path, query) => {
  expect(parseAddress(hash)).toEqual({ path, query });
});

test('a value of the query is set, changed and taken away', () => {
  const address = parseAddress('#/nodes?q=a&site=s1');
  expect(formatAddress(withQuery(address, { q: 'b', site: undefined, state: 'Unknown' }))).toBe(
    '#/nodes?q=b&state=Unknown',
  );
  expect(hrefOf(['sites', 'a/b'])).toBe('#/sites/a%2Fb');
});
