import type { Family } from '@unbounded/ip';
import { expect, test } from 'vitest';

import { createExternalNames } from './external-names.ts';

type Zone = Partial<Record<Family, readonly string[] | string>>;

const setUp = (zone: Zone) => {
  const clock = { ms: 0 };
  let asked = 0;
  let changes = 0;
  const names = createExternalNames({
    resolve: async (_name, family) => {
      asked++;
      const answer = zone[family] ?? 'ENODATA';
      if (typeof answer === 'string') throw Object.assign(new Error(answer), { code: answer });
      return answer;
    },
    intervalMs: 30_000,
    now: () => clock.ms,
  });
  names.on(() => changes++);
  const look = async (atMs: number) => {
    clock.ms = atMs;
    names.look(new Set(['gw']));
    await new Promise((resolve) => setImmediate(resolve));
    return names.get('gw');
  };
  return { zone, names, look, asked: () => asked, changes: () => changes };
};

test('both families are asked for, and only unicast addresses count', async () => {
  const { look } = setUp({
    4: ['198.51.100.2', '127.0.0.1', '169.254.1.1', '198.51.100.1', '0.0.0.0'],
    6: ['fe80::1', '::1', '2001:DB8::1', '::ffff:10.0.0.1'],
  });
  expect(await look(0)).toEqual({ addresses: ['198.51.100.1', '198.51.100.2', '2001:db8::1'] });
});

test('a name is resolved again after the interval, not before, and an answer in another order is no change', async () => {
  const { zone, look, asked, changes } = setUp({ 4: ['198.51.100.1', '198.51.100.2'] });
  await look(0);
  await look(29_999);
  expect(asked()).toBe(2);
  zone[4] = ['198.51.100.2', '198.51.100.1'];
  await look(30_000);
  expect([asked(), changes()]).toEqual([4, 1]);
  zone[4] = ['198.51.100.3'];
  expect(await look(60_000)).toEqual({ addresses: ['198.51.100.3'] });
  expect(changes()).toBe(2);
});

test.each(['ENOTFOUND', 'ETIMEOUT', 'ESERVFAIL'])(
  'after %s the last addresses stay, and the failure is told',
  async (code) => {
    const { zone, look } = setUp({ 4: ['198.51.100.1'], 6: ['2001:db8::1'] });
    await look(0);
    zone[4] = zone[6] = code;
    expect(await look(30_000)).toEqual({ addresses: ['198.51.100.1', '2001:db8::1'], error: code });
    zone[6] = ['2001:db8::2'];
    expect(await look(60_000)).toEqual({ addresses: ['198.51.100.1', '2001:db8::2'], otherFamily: `A: ${code}` });
  },
);

test.each(['ESERVFAIL', 'ENOTIMP', 'EREFUSED', 'ETIMEOUT'])(
  'a name with an IPv4 address is resolved, though the server answers %s for IPv6',
  async (code) => {
    const { look } = setUp({ 4: ['198.51.100.1'], 6: code });
    const resolved = { addresses: ['198.51.100.1'], otherFamily: `AAAA: ${code}` };
    expect(await look(0)).toEqual({ ...resolved, unanswered: [6] });
    expect(await look(599_999)).toEqual({ ...resolved, unanswered: [6] });
    expect(await look(630_000)).toEqual(resolved);
  },
);

test('no answer at all is none for either family, and a late one for one of them ends its waiting', async () => {
  const { zone, look } = setUp({ 4: 'ETIMEOUT', 6: 'ENODATA' });
  expect(await look(0)).toEqual({ addresses: [], error: 'ETIMEOUT', unanswered: [4, 6] });
  zone[4] = ['198.51.100.1'];
  expect(await look(30_000)).toEqual({ addresses: ['198.51.100.1'] });
});

test('a family that has no records any more goes, unless nothing would be left', async () => {
  const { zone, look } = setUp({ 4: ['198.51.100.1'], 6: ['2001:db8::1'] });
  await look(0);
  zone[4] = 'ENODATA';
  expect(await look(30_000)).toEqual({ addresses: ['2001:db8::1'] });
  zone[6] = ['::1'];
  expect(await look(60_000)).toEqual({ addresses: ['2001:db8::1'], error: 'no usable address' });
});

test('a name that is not wanted any more is forgotten', async () => {
  const { names, look } = setUp({ 4: ['198.51.100.1'] });
  await look(0);
  names.look(new Set());
  expect(names.get('gw')).toBeUndefined();
});
