import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Candidate, isUsable, reachedSites, reachesSite, selectMembers } from './selection.ts';
import { siteHash } from './site-hash.ts';
import { PEER_STATES } from './state.ts';

const member = (state: Candidate['state'], more: Partial<Candidate> = {}): Candidate => ({
  tier: 0,
  state,
  reaches: undefined,
  inGrace: false,
  ...more,
});
const denies = { reaches: false };
const far = { tier: 1 };
/** Answers probes, returns no echo. */
const deaf = { forwards: false };
const since = (sinceMs: number) => ({ lost: { sinceMs, detectMs: 300 } });
const inGrace = { inGrace: true };
const young = { ...inGrace, ...denies };

describe('who carries', () => {
  test.each<[string, Candidate[], number[]]>([
    ['every healthy member shares', [member('Healthy'), member('Degraded'), member(undefined)], [1, 1, 1]],
    ['an unhealthy one leaves to the others', [member('Healthy'), member('Unhealthy')], [1, 0]],
    ['one that recovers does not carry yet', [member('Healthy'), member('Recovering')], [1, 0]],
    ['one that denies the site leaves to the others', [member('Healthy', denies), member('Healthy')], [0, 1]],
    ['a farther tier waits', [member('Healthy'), member('Healthy', far)], [1, 0]],
    ['a farther tier steps in', [member('Unhealthy'), member('Healthy', far)], [0, 1]],
    ['a farther tier steps in where the nearest denies', [member('Healthy', denies), member('Healthy', far)], [0, 1]],
    ['a new one carries in its grace when there is no other', [member('New', inGrace)], [1]],
    ['a new one in its grace comes before an unhealthy one', [member('Unhealthy'), member('New', inGrace)], [0, 1]],
    ['a new one in its grace that denies the site carries when there is no other', [member('New', young)], [1]],
    [
      'a new one that denies the site leaves to one that is proven',
      [member('New', young), member('Healthy', denies)],
      [0, 1],
    ],
    [
      'a new one that denies the site leaves to one that does not',
      [member('New', young), member('New', inGrace)],
      [0, 1],
    ],
    ['a new one that answers comes before an unhealthy one', [member('New', young), member('Unhealthy')], [1, 0]],
    ['one that never answered carries when there is no other', [member('New')], [1]],
    ['one that never answered leaves to a new one in its grace', [member('New'), member('New', inGrace)], [0, 1]],
    ['one that never answered leaves to a farther tier', [member('New'), member('Healthy', far)], [0, 1]],
    ['one that never answered leaves to an unhealthy one', [member('New'), member('Unhealthy')], [0, 1]],
    ['unhealthy ones carry rather than nothing', [member('Unhealthy'), member('Recovering')], [1, 1]],
    ['one that denies the site carries rather than nothing', [member('Healthy', denies)], [1]],
    [
      'a way round that denies the site never carries',
      [member('New'), member('Healthy', { ...far, ...denies })],
      [1, 0],
    ],
    ['one that returns no echo leaves to the others', [member('Healthy', deaf), member('Healthy')], [0, 1]],
    ['one that returns no echo leaves to a farther tier', [member('Healthy', deaf), member('Healthy', far)], [0, 1]],
    ['where none returns an echo nothing changes', [member('Healthy', deaf), member('Degraded', deaf)], [1, 1]],
    ['the last one carries, echo or not', [member('Healthy', deaf), member('Unhealthy')], [1, 0]],
    [
      'one that answers and returns no echo comes before a new one',
      [member('Healthy', deaf), member('New', inGrace)],
      [1, 0],
    ],
    [
      'where none returns an echo, those carry that did last',
      [
        member('Healthy', { ...deaf, ...since(0) }),
        member('Healthy', { ...deaf, ...since(301) }),
        member('Healthy', { ...deaf, ...since(1) }),
      ],
      [0, 1, 1],
    ],
    [
      'those that are lost together carry together',
      [member('Unhealthy', since(0)), member('Unhealthy', since(300))],
      [1, 1],
    ],
    [
      'one that was lost before this process began comes last',
      [member('Unhealthy'), member('Unhealthy', since(0))],
      [0, 1],
    ],
    [
      'a farther tier that was lost last carries on',
      [member('Unhealthy', since(0)), member('Unhealthy', { ...far, ...since(1000) })],
      [0, 1],
    ],
    [
      'one that answers again comes before one that was lost last',
      [member('Healthy'), member('Unhealthy', since(9))],
      [1, 0],
    ],
    ['nobody', [], []],
  ])('%s', (_name, members, weights) => {
    expect(selectMembers(members)).toEqual(weights);
  });
});

const candidates = fc.array(
  fc.record({
    tier: fc.integer({ min: 0, max: 3 }),
    state: fc.constantFrom(undefined, ...PEER_STATES),
    reaches: fc.constantFrom(undefined, true, false),
    inGrace: fc.boolean(),
    forwards: fc.constantFrom(undefined, true, false),
    lost: fc.option(fc.record({ sinceMs: fc.integer(), detectMs: fc.nat() }), { nil: undefined }),
  }),
  { maxLength: 16 },
);

test('carriers stand in one tier, and are usable as soon as anyone is', () => {
  fc.assert(
    fc.property(candidates, (members) => {
      const weights = selectMembers(members);
      const carriers = members.filter((_, index) => weights[index] === 1);
      const usable = members.filter(isUsable);
      if (weights.length !== members.length || new Set(carriers.map(({ tier }) => tier)).size > 1) return false;
      if (usable.length === 0) return true;
      const tier = Math.min(...usable.map((one) => one.tier));
      return carriers.length > 0 && carriers.every((one) => isUsable(one) && one.tier === tier);
    }),
  );
});

test('one that never answered carries nothing while anyone else ever did', () => {
  fc.assert(
    fc.property(candidates, (members) => {
      const weights = selectMembers(members);
      const nearest = Math.min(...members.map(({ tier }) => tier));
      const answered = members.some(
        ({ state, reaches, tier }) => state !== 'New' && (tier === nearest || reaches !== false),
      );
      return (
        !answered || members.every(({ state, inGrace }, index) => state !== 'New' || inGrace || weights[index] === 0)
      );
    }),
  );
});

test('of any group some carry', () => {
  fc.assert(fc.property(candidates, (members) => members.length === 0 || selectMembers(members).includes(1)));
});

describe('whether a peer reaches a site', () => {
  const said = (names: string[], truncated = false) => ({ hashes: names.map(siteHash), truncated });
  test.each([
    ['it lists it', said(['a', 'b']), 'b', true],
    ['it does not', said(['a']), 'b', false],
    ['it does not list all', said(['a'], true), 'b', undefined],
    ['it says nothing', undefined, 'b', undefined],
    ['the group is of no site', said(['a']), undefined, undefined],
  ])('%s', (_name, sites, site, expected) => {
    expect(reachesSite(sites, site)).toBe(expected);
  });
});

test('a gateway says what it serves and what a gateway of the nearest tier reaches, and no way round', () => {
  const groups = [
    { site: 'c', members: [member('Healthy', { reaches: true })] },
    { site: 'd', members: [member('Unhealthy'), member('Healthy', far)] },
    { site: 'e', members: [member('Healthy', denies)] },
    { site: 'f', members: [member('New', inGrace)] },
    { members: [member('Healthy')] },
  ];
  expect(reachedSites(['b', 'a', 'c'], groups)).toEqual(['a', 'b', 'c']);
});
