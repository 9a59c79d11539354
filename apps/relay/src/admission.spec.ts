import { beforeEach, expect, test } from 'vitest';

import { Admission, type AdmissionLimits, limitedAs, type Place } from './admission.ts';

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
])('%s counts as %s', (address, as) => expect(limitedAs(address)).toBe(as));

const admissionWith = (limits: Partial<AdmissionLimits>): Admission =>
  new Admission({
    maxConnections: 1e6,
    maxPending: 1e6,
    maxConnectionsPerAddress: 1e6,
    newConnectionsPerSecond: 1e6,
    ...limits,
  });

/** Who was made to go, by name. */
const evicted: string[] = [];
beforeEach(() => void evicted.splice(0));
const placeOf = (name: string): Place => ({ holder: { evict: () => void evicted.push(name) }, address: undefined });
const enter = (admission: Admission, name: string, address = 'a'): Place => {
  const place = placeOf(name);
  admission.enter(place, address);
  expect(admission.enterAddress(place, address, 0)).toBeUndefined();
  return place;
};

test('an address gets a burst, and then so many connections a second', () => {
  const admission = admissionWith({ newConnectionsPerSecond: 10 });
  const take = (now: number) =>
    Array.from({ length: 100 }, () => admission.enterAddress(placeOf('x'), 'a', now)).filter(
      (refusal) => refusal === undefined,
    ).length;
  expect([take(0), take(100), take(1000), take(60_000)]).toEqual([50, 1, 9, 50]);
});

test('addresses without connections are forgotten', () => {
  const admission = admissionWith({ maxConnectionsPerAddress: 1, newConnectionsPerSecond: 1 });
  const [place, other] = [placeOf('place'), placeOf('other')];
  expect(admission.enterAddress(place, 'a', 0)).toBeUndefined();
  admission.sweep(60_000);
  expect(admission.enterAddress(other, 'a', 60_000)).toBe('address');
  admission.leave(place);
  admission.sweep(120_000);
  expect(admission.enterAddress(other, 'a', 120_000)).toBeUndefined();
});

test('a new connection is always let in: for it goes the oldest without a key, of the address with the most', () => {
  const admission = admissionWith({ maxPending: 3 });
  const member = enter(admission, 'member', 'home');
  for (const name of ['s1', 's2']) enter(admission, name, 'elsewhere');
  enter(admission, 's3', 'elsewhere');
  expect(evicted).toEqual(['s1']);
  expect(admission.admit(member, true)).toBe(true);
  for (const name of ['s4', 's5', 's6']) enter(admission, name, 'elsewhere');
  expect(evicted).toEqual(['s1', 's2', 's3']);
  expect([admission.open, admission.pending]).toEqual([4, 3]);
});

test('behind an address with too many connections one without a key makes room', () => {
  const admission = admissionWith({ maxConnectionsPerAddress: 2 });
  enter(admission, 'stranger');
  const member = enter(admission, 'member');
  admission.admit(member, true);
  admission.admit(enter(admission, 'another'), true);
  expect(evicted).toEqual(['stranger']);
  const late = placeOf('late');
  admission.enter(late, 'a');
  expect(admission.enterAddress(late, 'a', 0)).toBe('address');
});

test('who has proven a key takes the place of who has not, and never the other way round', () => {
  const admission = admissionWith({ maxConnections: 2 });
  const [squatter, first, second, third, late] = ['squatter', 'first', 'second', 'third', 'late'].map((name) =>
    enter(admission, name),
  ) as [Place, Place, Place, Place, Place];
  expect([admission.admit(squatter, false), admission.admit(first, true)]).toEqual([true, true]);
  expect(admission.admit(late, false)).toBe(false);
  expect(admission.admit(second, true)).toBe(true);
  expect(evicted).toEqual(['squatter']);
  expect(admission.admit(third, true)).toBe(false);
  expect(admission.admit(second, true)).toBe(true); // it has its place already
});
