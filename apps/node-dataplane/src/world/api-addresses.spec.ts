import { silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import type { StateFile } from '../state/state-file.ts';
import { type ApiServer, createApiAddresses, usableAddress } from './api-addresses.ts';

const fileOf = (kept: string[] | undefined): StateFile<string[]> & { written: () => string[] | undefined } => {
  let value = kept;
  return { read: () => value, write: (next) => void (value = next), remove: () => undefined, written: () => value };
};
const server = (changes: Partial<ApiServer> = {}): ApiServer => ({
  host: '[2001:db8::1]',
  peers: () => [],
  ...changes,
});
const shown = (addresses: ReturnType<typeof createApiAddresses>): string[] =>
  addresses.list().map(({ address }) => address);

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['[2001:DB8::1]', '2001:db8::1'],
  ['127.0.0.1', undefined],
  ['fe80::1%eth0', undefined],
  ['kubernetes.default', undefined],
])('%s is used as %s', (text, address) => expect(usableAddress(text)).toBe(address));

test('the configured address and those of connections are known, and kept', async () => {
  const file = fileOf(undefined);
  const peers = new Map<string, number>();
  const addresses = createApiAddresses(server({ peers: () => peers }), file, silentLogger);
  expect(shown(addresses)).toEqual(['2001:db8::1']);
  peers.set('::ffff:198.51.100.7', performance.now());
  await addresses.refresh();
  expect(shown(addresses)).toEqual(['198.51.100.7', '2001:db8::1']);
  expect(file.written()!.toSorted()).toEqual(shown(addresses));
});

test('an agent that starts without an API server knows the addresses of before', async () => {
  const away = server({ host: '192.0.2.1' });
  const addresses = createApiAddresses(away, fileOf(['203.0.113.99', 'nonsense', '127.0.0.1']), silentLogger);
  await addresses.refresh();
  expect(shown(addresses)).toEqual(['192.0.2.1', '203.0.113.99']);
});

test('of many addresses those that were seen first go', () => {
  const peers = Array.from({ length: 100 }, (_, index) => [`198.51.100.${index + 1}`, index] as const);
  const addresses = createApiAddresses(server({ peers: () => peers }), fileOf([]), silentLogger);
  expect(shown(addresses)).toHaveLength(32);
  expect(shown(addresses)).toContain('198.51.100.100');
});

const HOUR_MS = 3_600_000;

test('an address that was not seen for a day is forgotten, but only while there is a connection', () => {
  let clockMs = 0;
  const peers = new Map<string, number>();
  const file = fileOf(['203.0.113.99']);
  const addresses = createApiAddresses(
    server({ host: 'api.example', peers: () => peers }),
    file,
    silentLogger,
    () => clockMs,
  );
  clockMs = 30 * HOUR_MS;
  expect(shown(addresses)).toEqual(['203.0.113.99']);
  peers.set('198.51.100.7', clockMs);
  expect(shown(addresses)).toEqual(['198.51.100.7']);
  expect(file.written()).toEqual(['198.51.100.7']);
  clockMs += 30 * HOUR_MS;
  expect(shown(addresses)).toEqual(['198.51.100.7']);
  peers.set('198.51.100.8', clockMs);
  expect(shown(addresses)).toEqual(['198.51.100.8']);
});

test('an address of before is kept for a day beside the one that is used', () => {
  let clockMs = 0;
  const peers = new Map([['198.51.100.7', 0]]);
  const addresses = createApiAddresses(
    server({ host: 'api.example', peers: () => peers }),
    fileOf(['203.0.113.99']),
    silentLogger,
    () => clockMs,
  );
  clockMs = 23 * HOUR_MS;
  peers.set('198.51.100.7', clockMs);
  expect(shown(addresses)).toEqual(['198.51.100.7', '203.0.113.99']);
});
