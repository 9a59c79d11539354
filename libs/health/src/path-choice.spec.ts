import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  choosePath,
  FIRST_HOLD_MS,
  heardPeer,
  LONGEST_HOLD_MS,
  nextPath,
  PATH_STATES,
  type PathChoice,
  pathTable,
  restPath,
  STABLE_MS,
  type Stance,
  stanceOf,
  startPath,
} from './path-choice.ts';

const SETTINGS = { intervalMs: 500, detectMultiplier: 3 };
const STANCES: Readonly<Record<string, Stance>> = { r: 'relay', y: 'ready', d: 'direct' };

/** `+` a reply, `-` an interval without, r/y/d what the peer says; `Held:500` shows the wait that is left. */
const after = (events: string, from: PathChoice = startPath('Relay')): PathChoice =>
  events
    .split('')
    .reduce<PathChoice>(
      (choice, letter) =>
        STANCES[letter]
          ? heardPeer(choice, STANCES[letter])
          : nextPath(choice, letter === '+' ? 'reply' : 'silence', SETTINGS),
      from,
    );
const times = (events: string, count: number): string => events.repeat(count);
const waits = (ms: number): string => times('+', ms / SETTINGS.intervalMs);

describe('a path, with a detect multiplier of 3', () => {
  test.each([
    ['begins on the relay', '', 'Relay'],
    ['is not proven by fewer replies in a row', 'y++-++', 'Relay'],
    ['is ready after three replies in a row, and waits for the peer', '+++++', 'Ready'],
    ['goes to direct when the peer says that it is ready', '+++y', 'Direct'],
    ['goes to direct at once when the peer was ready before', 'y+++', 'Direct'],
    ['is not ready any more after one lost probe', '+++-', 'Relay'],
    ['stays direct with fewer lost in a row', '+++y--+--', 'Direct'],
    ['goes back after three lost in a row', '+++y---', 'Held'],
    ['goes back when the peer does, and needs proof again', '+++dr++', 'Relay'],
    ['follows the peer to direct again without a wait', '+++dr+++y', 'Direct'],
    ['does not go to direct while the peer is not ready', 'r++++++', 'Ready'],
    ['waits after a failure that came soon', `+++y---${waits(FIRST_HOLD_MS - 500)}y`, 'Held'],
    ['goes to direct after the wait, if it was answered meanwhile', `+++y---${waits(FIRST_HOLD_MS)}y`, 'Direct'],
  ])('%s', (_name, events, state) => {
    expect(after(events).state).toBe(state);
  });

  test('waits twice as long after each failure that comes soon, up to a bound; a stable time makes the next the first', () => {
    let choice = after('+++y---');
    for (let hold = FIRST_HOLD_MS; hold < 2 * LONGEST_HOLD_MS; hold *= 2) {
      expect([choice.state, choice.timeMs]).toEqual(['Held', Math.min(hold, LONGEST_HOLD_MS)]);
      choice = after(`${waits(choice.timeMs)}y`, choice);
      expect(choice.state).toBe('Direct');
      choice = after('---', choice);
    }
    choice = after(`${waits(choice.timeMs)}y${waits(STABLE_MS)}---`, choice);
    expect([choice.state, choice.timeMs]).toEqual(['Held', 0]);
    expect(after('+++y', choice).state).toBe('Direct');
    expect(after('+++y---', choice).timeMs).toBe(FIRST_HOLD_MS);
  });

  test('does not wait when there is no relay to wait on', () => {
    expect(after('+++y', restPath(after('+++y---'))).state).toBe('Direct');
  });
});

test('a path that an agent of before left on direct stays there until it fails', () => {
  expect(after('--+', startPath('Direct')).state).toBe('Direct');
  expect(after('---', startPath('Direct')).state).toBe('Held');
});

const histories = fc.array(fc.constantFrom('+', '-', 'r', 'y', 'd'), { maxLength: 80 }).map((all) => all.join(''));

test('whatever happened: N intervals of silence end on the relay, and direct is entered after N replies in a row only', () => {
  fc.assert(
    fc.property(histories, fc.constantFrom('Relay' as const, 'Direct' as const), (history, start) => {
      let choice = startPath(start);
      let replies = 0;
      for (const letter of history) {
        const before = choice.state;
        if (letter === '+') replies++;
        if (letter === '-') replies = 0;
        choice = after(letter, choice);
        if (choice.state === 'Direct' && before !== 'Direct' && replies < 3) return false;
        if (choice.state === 'Direct' && before === 'Held') return false;
      }
      return after('---', choice).state !== 'Direct';
    }),
  );
});

/** Two ends of a link; each interval both ask, and what arrives carries the sender's stance. */
const both = (
  [a, b]: readonly [PathChoice, PathChoice],
  aToB: boolean,
  bToA: boolean,
): readonly [PathChoice, PathChoice] => {
  const isAnswered = aToB && bToA;
  const step = (own: PathChoice, peer: PathChoice, hears: boolean): PathChoice => {
    const passed = nextPath(own, isAnswered ? 'reply' : 'silence', SETTINGS);
    return hears ? heardPeer(passed, stanceOf(peer)) : passed;
  };
  const nextA = step(a, b, bToA);
  return [nextA, step(b, nextA, aToB)];
};

const weather = fc.array(fc.tuple(fc.boolean(), fc.boolean(), fc.integer({ min: 1, max: 30 })), { maxLength: 30 });

test('whatever the link did before, both ends come to the same path, and leave a dead one within N intervals', () => {
  fc.assert(
    fc.property(weather, fc.constantFrom([false, false], [true, false], [false, true]), (spells, [aToB, bToA]) => {
      let ends: readonly [PathChoice, PathChoice] = [startPath('Relay'), startPath('Direct')];
      for (const [there, back, count] of spells)
        for (let interval = 0; interval < count; interval++) ends = both(ends, there, back);
      let dead = ends;
      for (let interval = 0; interval < 3; interval++) dead = both(dead, aToB, bToA);
      if (dead.some(({ state }) => state === 'Direct')) return false;
      for (let interval = 0; interval < LONGEST_HOLD_MS / 500 + 10; interval++) ends = both(ends, true, true);
      return ends.every(({ state }) => state === 'Direct');
    }),
    { numRuns: 200 },
  );
});

test('a link that fails every minute or oftener moves ever more seldom', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 110 }), { minLength: 3, maxLength: 12 }), (spells) => {
      let choice = after('y+++');
      let least = 0;
      for (const intervals of spells) {
        choice = after(`${times('+', intervals)}---`, choice);
        if (choice.state !== 'Held' || choice.timeMs < least) return false;
        least = choice.timeMs;
        choice = after(`${waits(choice.timeMs)}y+++`, choice);
      }
      return choice.state === 'Direct' && least === Math.min(FIRST_HOLD_MS * 2 ** (spells.length - 1), LONGEST_HOLD_MS);
    }),
  );
});

test.each([
  ['the relay, while direct is not proven', 'Relay', {}, 'relay'],
  ['direct, when it is proven by both', 'Direct', {}, 'direct'],
  ['the relay, where the mode says always', 'Direct', { mode: 'always' }, 'relay'],
  [
    'nothing, where the mode says always and the proxy is not there yet',
    'Direct',
    { mode: 'always', hasProxy: false },
    undefined,
  ],
  ['unproven direct, while no relay is connected', 'Held', { isRelayUp: false }, 'direct'],
  ['unproven direct, while there is no proxy', 'Relay', { hasProxy: false }, 'direct'],
  ['the proxy, when there is nothing else', 'Relay', { isRelayUp: false, hasDirect: false }, 'relay'],
  ['nothing, when there is nothing', 'Relay', { hasProxy: false, hasDirect: false }, undefined],
] as const)('chosen is %s', (_name, state, ways, path) => {
  const usual = { mode: 'auto', hasProxy: true, isRelayUp: true, hasDirect: true } as const;
  expect(choosePath({ ...startPath('Relay'), state }, { ...usual, ...ways })).toBe(path);
});

test('the table for the documentation has a line for every state', () => {
  const lines = pathTable().split('\n');
  expect(lines).toHaveLength(2 + PATH_STATES.length);
  expect(lines[4]).toBe('| Direct | stays | Held after N in a row | stays | Relay | stays |');
});
