import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { relayTallies } from '@unbounded/keeper-protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import type { RelayProxies } from './relay-proxies.ts';
import { clock, folder, openProxies, PLAN, stateWith, tellState, useProxies } from './relay-proxies.testdata.ts';
import { relayPlan } from './relay.testdata.ts';

useProxies();

/** As the proxies' process does every two seconds. */
let beats = 0;
const beat = (): void => {
  const none = { sent: 0, received: 0 };
  const tallies = { frames: none, bytes: none, connections: 1, rebinds: 0, dropped: {} };
  relayTallies.write(join(folder, 'keeper/relay-tallies.json'), { ...tallies, beats: ++beats });
};
describe('the state of proxies whose process has ended', () => {
  let proxies: RelayProxies;
  let changes: number;
  /** Passes of the agent, one every 5 s. @returns the messages of the last one */
  const pass = (seconds: number, meanwhile: () => void = () => undefined): string[] => {
    let messages: string[] = [];
    for (const endMs = clock.ms + 1000 * seconds; clock.ms < endMs;) {
      clock.ms += 5000;
      meanwhile();
      messages = proxies.apply(PLAN).map(({ message }) => message);
    }
    return messages;
  };
  beforeEach(() => {
    mkdirSync(join(folder, 'keeper'));
    proxies = openProxies();
    changes = 0;
    proxies.onChange(() => changes++);
    tellState(stateWith(true));
  });

  test('is not believed for longer than half a minute, and is again once they write', () => {
    expect(pass(120, beat)).toEqual([]);
    expect(pass(25)).toEqual([]);
    changes = 0;
    expect(pass(10)).toEqual([expect.stringContaining('has not said for half a minute that it lives')]);
    expect([proxies.isUp(), proxies.relays().away, changes]).toEqual([false, ['relay.example.com:3478'], 1]);
    expect(pass(60)).toHaveLength(1);
    expect(pass(5, beat)).toEqual([]);
    expect([proxies.isUp(), changes]).toEqual([true, 2]);
  });

  test('is believed at once when they have written another state, and after a time in which no relay was wanted', () => {
    pass(120, beat);
    expect(pass(60)).toHaveLength(1);
    tellState(stateWith(true, 40_001));
    expect(pass(5)).toEqual([]);
    expect(pass(60)).toHaveLength(1);
    proxies.apply(relayPlan(undefined, { listen: 51820, to: ['near'] }));
    expect(proxies.relays().connected).toHaveLength(1);
    expect(pass(5)).toEqual([]);
  });

  test('stays so while the counters cannot be read for a moment', () => {
    pass(120, beat);
    expect(pass(60)).toHaveLength(1);
    const file = join(folder, 'keeper/relay-tallies.json');
    renameSync(file, `${file}.kept`);
    mkdirSync(file);
    expect(pass(5)).toHaveLength(1);
    rmSync(file, { recursive: true });
    renameSync(`${file}.kept`, file);
    expect(pass(5)).toHaveLength(1);
  });

  test('stands as it is where the keeper is of a version that says nothing of that', () => {
    expect(pass(300)).toEqual([]);
    expect(proxies.isUp()).toBe(true);
  });

  test('is believed after an hour in which the agent itself was stopped', () => {
    expect(pass(60, beat)).toEqual([]);
    clock.ms += 3_600_000;
    expect(pass(5)).toEqual([]);
    expect(pass(60, beat)).toEqual([]);
  });
});
