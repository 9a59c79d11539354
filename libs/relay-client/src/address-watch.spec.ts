import { silentLogger } from '@unbounded/telemetry';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { relaysOf, watchAddresses } from './address-watch.ts';
import { parseEndpoint } from './endpoint.ts';
import { isPublicAddress } from './public-address.ts';
import { FakeClock } from './test/fake-clock.ts';

const endpoint = parseEndpoint('relay.example:3478');

test.each([
  ['one relay each for private addresses', ['10.0.0.2', '10.0.0.1', '10.0.0.1'], ['10.0.0.1', '10.0.0.2']],
  ['one relay by its name for public addresses', ['203.0.113.1', '198.51.100.1'], ['relay.example']],
  ['private ones only, when there are both', ['203.0.113.1', '10.0.0.1'], ['10.0.0.1']],
  ['addresses of carriers, of IPv6 and of the machine are private', ['100.64.0.1'], ['100.64.0.1']],
  ['the first family of two', ['fd00::1', '10.0.0.1', 'fd00::2'], ['fd00::1', 'fd00::2']],
  ['what is no address is none', ['relay-0', '10.0.0.1'], ['10.0.0.1']],
])('an answer stands for %s', (_name, answer, hosts) => {
  expect(relaysOf(endpoint, answer).map(({ host }) => host)).toEqual(hosts);
});

test.each([
  ...['10.1.2.3', '172.31.0.1', '192.168.9.9', '100.127.255.255', '127.0.0.1', '169.254.1.1', '224.0.0.1', '0.0.0.0'],
  ...['::1', '::', 'fd12::1', 'fe80::1', 'ff02::1', '::ffff:10.0.0.1', 'relay.example', ''],
])('%s is not public', (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each(['172.32.0.1', '100.128.0.1', '203.0.113.9', '2001:db8::1', '::ffff:203.0.113.1'])(
  '%s is public',
  (address) => {
    expect(isPublicAddress(address)).toBe(true);
  },
);

/** A name server whose answers the test gives, one after the other. */
const watched = () => {
  const clock = new FakeClock();
  const seen: string[][] = [];
  const questions: PromiseWithResolvers<readonly string[]>[] = [];
  const watch = watchAddresses({
    endpoint,
    resolve: () => {
      const question = Promise.withResolvers<readonly string[]>();
      questions.push(question);
      return question.promise;
    },
    clock,
    random: () => 1,
    logger: silentLogger,
    onRelays: (relays) => seen.push(relays.map(({ host }) => host)),
  });
  watch.start();
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const answer = async (given: readonly string[] | Error): Promise<number> => {
    const question = questions.at(-1)!;
    if (given instanceof Error) question.reject(given);
    else question.resolve(given);
    await settled();
    return clock.pending[0]!;
  };
  return { clock, seen, questions, watch, answer, settled };
};

test('a name is looked up every 30 s, and only what changes is told', async () => {
  const { clock, seen, answer } = watched();
  for (const given of [['10.0.0.1'], ['10.0.0.1'], ['10.0.0.2', '10.0.0.1'], ['10.0.0.1', '10.0.0.2'], ['10.0.0.3']]) {
    expect(await answer(given)).toBe(30_000);
    clock.pass(30_000);
  }
  expect(seen).toEqual([['10.0.0.1'], ['10.0.0.1', '10.0.0.2'], ['10.0.0.3']]);
});

test('an empty, failed or late answer changes nothing', async () => {
  const { clock, seen, answer, settled } = watched();
  await answer(['10.0.0.1']);
  clock.pass(30_000);
  expect(await answer([])).toBe(30_000);
  clock.pass(30_000);
  expect(await answer(new Error('SERVFAIL'))).toBe(30_000);
  clock.pass(30_000);
  clock.pass(10_000);
  await settled();
  expect(clock.pending).toEqual([30_000]);
  clock.pass(30_000);
  await answer(['10.0.0.1']);
  expect(seen).toEqual([['10.0.0.1']]);
});

test('until there is a first answer it asks after 1 s, 2 s, 4 s', async () => {
  const { clock, seen, answer } = watched();
  for (const delay of [1000, 2000, 4000]) {
    expect(await answer(new Error('EAI_AGAIN'))).toBe(delay);
    clock.pass(delay);
  }
  expect(await answer(['10.0.0.1'])).toBe(30_000);
  expect(seen).toHaveLength(1);
});

test('an answer after the end is nothing', async () => {
  const { clock, seen, watch, answer } = watched();
  watch.stop();
  await answer(['10.0.0.1']);
  expect([seen, clock.pending]).toEqual([[], []]);
});

test('any answer gives at least one relay', () => {
  const text = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string());
  fc.assert(fc.property(fc.array(text), (answer) => relaysOf(endpoint, answer).length > 0));
});
