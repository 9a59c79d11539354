import { expect, test } from 'vitest';
import { isProxied, isPulledAway } from './endpoints.ts';

const relay = { path: 'relay', endpoint: '127.0.0.1:40000', reason: 'unproven' } as const;
const direct = { path: 'direct', endpoint: '192.0.2.1:51820', reason: 'proven' } as const;

test.each([
  ['the proxy, as chosen', relay, '127.0.0.1:40000', false],
  ['the proxy on the port of before', relay, '127.0.0.1:40001', true],
  ['the peer itself, though the relay is chosen', relay, '192.0.2.1:51820', true],
  ['none yet', relay, undefined, true],
  ['the peer itself, as chosen', direct, '192.0.2.1:51820', false],
  ['the peer at another address that it called from', direct, '198.51.100.1:9', false],
  ['a proxy, though direct is chosen', direct, '127.0.0.1:40000', true],
  ['a proxy on IPv6, though direct is chosen', direct, '[::1]:40000', true],
  ['none yet, and direct is chosen', direct, undefined, true],
] as const)('WireGuard has %s', (_name, way, endpoint, isPulled) => {
  expect(isPulledAway(endpoint, way)).toBe(isPulled);
});

test('proxies are told by their address', () => {
  expect(['127.0.0.1:1', '[::1]:1', '12.7.0.0:1', '[::10]:1'].map(isProxied)).toEqual([true, true, false, false]);
});
