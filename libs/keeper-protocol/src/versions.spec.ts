import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  deviceStates,
  deviceUnits,
  processesOfKeepers,
  relayStates,
  relayTalliesOfAny,
  relayUnits,
  tunnelUnits,
} from './arbitraries.testdata.ts';
import { formerKeepers, formerRelayState, formerTallies } from './former.testdata.ts';
import { KeeperProtocolError, PROTOCOL_VERSION, type ProtocolFile } from './protocol-file.ts';
import { deviceState } from './device-state.ts';
import { deviceUnit } from './device-unit.ts';
import { keeperProcesses } from './keeper-processes.ts';
import { relayState } from './relay-state.ts';
import { relayTallies } from './relay-tallies.ts';
import { relayUnit } from './relay-unit.ts';
import { tunnelUnit } from './tunnel-unit.ts';

/** Each entry: a kind of file, and any valid content of it. */
const kind = <T extends object>(name: string, file: ProtocolFile<T>, values: fc.Arbitrary<T>) => ({
  name,
  /** With a value, and the text that is written for it. */
  always: (holds: (value: T, text: string) => void): void =>
    fc.assert(fc.property(values, (value) => holds(value, file.format(value)))),
  parse: (text: string): unknown => file.parse(text),
});
const kinds = [
  kind('tunnel unit', tunnelUnit, tunnelUnits),
  kind('device unit', deviceUnit, deviceUnits),
  kind('device state', deviceState, deviceStates),
  kind('relay unit', relayUnit, relayUnits),
  kind('relay state', relayState, relayStates),
  kind('relay tallies', relayTallies, relayTalliesOfAny),
  kind('processes of node-keeper', keeperProcesses, processesOfKeepers),
];

describe('a former keeper takes what is written now', () => {
  test.each(Object.entries(formerKeepers))('%s: any tunnel unit', (_, former) => {
    fc.assert(
      fc.property(tunnelUnits, (unit) => {
        expect(former.tunnelUnit.parse(JSON.parse(tunnelUnit.format(unit)))).toEqual(unit);
      }),
    );
  });

  test('2b31e37: any relay unit; d3a782d: any that has no trust', () => {
    fc.assert(
      fc.property(relayUnits, (unit) => {
        const written: unknown = JSON.parse(relayUnit.format(unit));
        expect(formerKeepers['2b31e37'].relayUnit.parse(written)).toEqual(unit);
        expect(formerKeepers.d3a782d.relayUnit.safeParse(written).success).toBe(unit.trust === undefined);
      }),
    );
  });

  test('any state, and a former agent any tallies', () => {
    fc.assert(
      fc.property(relayStates, relayTalliesOfAny, (state, tallies) => {
        expect(formerRelayState.parse(JSON.parse(relayState.format(state)))).toEqual(state);
        const { beats: _, ...former } = tallies;
        expect(formerTallies.parse(JSON.parse(relayTallies.format(tallies)))).toEqual(former);
      }),
    );
  });
});

/** With fields that nobody knows yet in each object of it. */
const withNews = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withNews);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([name, field]) =>
    name === 'dropped' || name === 'processes' ? [name, field] : [name, withNews(field)],
  );
  return { ...Object.fromEntries(fields), aFieldOfLater: { deep: [1, null] }, anotherOne: 'x' };
};

describe.each(kinds)('$name', ({ always, parse }) => {
  test('of a later version, with fields that nobody knows anywhere, is read for what is known', () =>
    always((value, text) => {
      const later = { ...(withNews(JSON.parse(text)) as object), version: 7, minReaderVersion: PROTOCOL_VERSION };
      expect(parse(JSON.stringify(later))).toEqual(value);
    }));

  test('without a version is of version 1; with it, the same', () =>
    always((value, text) => {
      expect(JSON.parse(text)).not.toHaveProperty('version');
      expect(parse(JSON.stringify({ ...value, version: 1 }))).toEqual(value);
    }));

  test('that needs a later reader is refused with the remedy, whatever else is wrong with it', () => {
    const needs = PROTOCOL_VERSION + 1;
    const reading = () => parse(JSON.stringify({ version: 9, minReaderVersion: needs, everything: 'else' }));
    expect(reading).toThrow(KeeperProtocolError);
    expect(reading).toThrow(
      new RegExp(`minReaderVersion ${needs}: this reader knows versions up to ${PROTOCOL_VERSION}: .*(delete|upgrade)`),
    );
  });

  test.each([0, 1.5, '2', null])('whose version is %j is refused', (version) =>
    always((value) => {
      for (const field of ['version', 'minReaderVersion'])
        expect(() => parse(JSON.stringify({ ...value, [field]: version }))).toThrow(`${field} `);
    }),
  );
});
