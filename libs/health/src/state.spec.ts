import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Health,
  healthTable,
  NEW_PEER,
  nextHealth,
  PEER_STATES,
  PROBE_EVENTS,
  type ProbeEvent,
  resumed,
} from './state.ts';

const after = (events: string, multiplier = 3, from: Health = NEW_PEER): string =>
  events
    .split('')
    .reduce<Health>((health, letter) => nextHealth(health, letter === '+' ? 'success' : 'failure', multiplier), from)
    .state;

describe('a peer, with a detect multiplier of 3', () => {
  test.each([
    ['is New before any reply', '', 'New'],
    ['stays New with fewer successes in a row', '++-++', 'New'],
    ['is Healthy after three in a row', '+++', 'Healthy'],
    ['stays New however many failures there are', '-'.repeat(50), 'New'],
    ['is Degraded by one failure', '+++-', 'Degraded'],
    ['is Healthy again by one success', '+++--+', 'Healthy'],
    ['is Unhealthy after three failures in a row', '+++---', 'Unhealthy'],
    ['is Recovering by one success', '+++---+', 'Recovering'],
    ['is Unhealthy again by one failure while Recovering', '+++---++-', 'Unhealthy'],
    ['recovers by as many successes as failures took it down', '+++---+++', 'Healthy'],
  ])('%s', (_name, events, state) => {
    expect(after(events)).toBe(state);
  });
});

test('a multiplier of 1 goes down and up by one event', () => {
  expect([after('+', 1), after('+-', 1), after('+-+', 1)]).toEqual(['Healthy', 'Unhealthy', 'Healthy']);
});

test('a resumed state needs a whole run of its own to change', () => {
  expect(after('--', 3, resumed('Healthy'))).toBe('Degraded');
  expect(after('---', 3, resumed('Healthy'))).toBe('Unhealthy');
  expect(after('+', 3, resumed('Recovering'))).toBe('Recovering');
});

const events = fc.array(fc.constantFrom<ProbeEvent>(...PROBE_EVENTS), { maxLength: 60 });
const multipliers = fc.integer({ min: 1, max: 10 });

test('whatever happened, N successes make Healthy, and N failures then make Unhealthy', () => {
  fc.assert(
    fc.property(events, multipliers, fc.constantFrom(...PEER_STATES), (history, n, start) => {
      const run = (health: Health, event: ProbeEvent): Health =>
        Array.from({ length: n }).reduce<Health>((value) => nextHealth(value, event, n), health);
      const before = history.reduce((health, event) => nextHealth(health, event, n), resumed(start));
      const up = run(before, 'success');
      return up.state === 'Healthy' && run(up, 'failure').state === 'Unhealthy';
    }),
  );
});

test('New is never entered again, and a peer that was never Healthy is always New', () => {
  fc.assert(
    fc.property(events, multipliers, (history, n) => {
      let health = NEW_PEER;
      let wasHealthy = false;
      for (const event of history) {
        health = nextHealth(health, event, n);
        wasHealthy ||= health.state === 'Healthy';
        if ((health.state === 'New') === wasHealthy) return false;
      }
      return true;
    }),
  );
});

test('the table for the documentation has a line for every state', () => {
  const lines = healthTable().split('\n');
  expect(lines).toHaveLength(2 + PEER_STATES.length);
  expect(lines[3]).toBe('| Healthy | stays | Unhealthy after N in a row, else Degraded after 1 |');
});
