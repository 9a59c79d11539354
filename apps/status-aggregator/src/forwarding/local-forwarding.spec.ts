import { expect, test } from 'vitest';
import { forwardingOf } from './forwarding.testdata.ts';
import { createLocalForwarding } from './local-forwarding.ts';

const bed = () => {
  let nowMs = 0;
  const exchange = createLocalForwarding(() => nowMs);
  return { exchange, pass: (ms: number) => (nowMs += ms) };
};
const answered = async (wanted: Awaited<ReturnType<ReturnType<typeof bed>['exchange']['want']>>) =>
  typeof wanted === 'object' && wanted.answer
    ? { ...(JSON.parse(wanted.answer.json.toString()) as object), ageMs: wanted.answer.ageMs }
    : wanted;

test('a node is asked for a minute after somebody wanted it, and its answer is there as long', async () => {
  const { exchange, pass } = bed();
  expect(await exchange.isWanted('n1')).toBe(false);
  expect(await exchange.want('n1')).toEqual({});
  expect([await exchange.isWanted('n1'), await exchange.isWanted('n2')]).toEqual([true, false]);
  await exchange.answer('n1', forwardingOf());
  pass(5000);
  expect(await answered(await exchange.want('n1'))).toEqual({ ...forwardingOf(), ageMs: 5000 });
  pass(55_000);
  expect(await exchange.isWanted('n1')).toBe(true);
  expect(await exchange.want('n1')).toEqual({});
  pass(60_000);
  expect(await exchange.isWanted('n1')).toBe(false);
});

test('an answer that nobody wants (any more) is not kept', async () => {
  const { exchange, pass } = bed();
  await exchange.answer('n1', forwardingOf());
  expect(await exchange.want('n1')).toEqual({});
  pass(60_000);
  await exchange.answer('n1', forwardingOf());
  expect(await exchange.want('n1')).toEqual({});
});

test('so many nodes are asked at once and no more; one that is asked already goes on', async () => {
  const { exchange, pass } = bed();
  for (let at = 0; at < 32; at++) expect(await exchange.want(`n${at}`)).toEqual({});
  expect(await exchange.want('n32')).toBe('tooMany');
  expect(await exchange.isWanted('n32')).toBe(false);
  pass(30_000);
  expect(await exchange.want('n0')).toEqual({});
  pass(30_000);
  expect(await exchange.want('n32')).toEqual({});
  expect(await exchange.isWanted('n0')).toBe(true);
});
