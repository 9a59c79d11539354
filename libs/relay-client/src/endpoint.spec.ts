import fc from 'fast-check';
import { expect, test } from 'vitest';

import { EndpointSyntaxError, formatEndpoint, parseEndpoint } from './endpoint.ts';

test.each([
  ['relay.example.com:443', 'relay.example.com', 443, false],
  ['relay.example.com', 'relay.example.com', 3478, false],
  ['relay://192.0.2.1:3478', '192.0.2.1', 3478, false],
  ['tcp://192.0.2.1', '192.0.2.1', 3478, false],
  ['relays://relay.example.com.', 'relay.example.com.', 3478, true],
  ['relays://[2001:db8::1]:443', '2001:db8::1', 443, true],
  ['[::1]', '::1', 3478, false],
])('%s', (text, host, port, isTls) => {
  const endpoint = parseEndpoint(text);
  expect(endpoint).toEqual({ host, port, isTls });
  expect(parseEndpoint(formatEndpoint(endpoint))).toEqual(endpoint);
});

test.each([
  ['', 'for a host'],
  [':3478', 'for a host'],
  ['2001:db8::1', 'without brackets'],
  ['relay:0', 'has port 0'],
  ['relay:65536', 'has port 65536'],
  ['wss://relay', 'begins with "wss://"'],
  ['192.0.2.300', 'for a host'],
  ['[192.0.2.1]:1', 'in brackets'],
  ['-relay.example', 'for a host'],
  ['relay..example', 'for a host'],
  ['relay example:1', 'for a host'],
  ['relay/path', 'no HOST:PORT'],
  [`${'a'.repeat(64)}.example`, 'for a host'],
])('"%s" is refused, with what would be right', (text, what) => {
  expect(() => parseEndpoint(text)).toThrow(what);
  expect(() => parseEndpoint(text)).toThrow('must be like');
});

test('any text is an endpoint or an EndpointSyntaxError', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 80 }), (text) => {
      try {
        const endpoint = parseEndpoint(text);
        expect(parseEndpoint(formatEndpoint(endpoint))).toEqual(endpoint);
      } catch (error) {
        expect(error).toBeInstanceOf(EndpointSyntaxError);
      }
    }),
  );
});
