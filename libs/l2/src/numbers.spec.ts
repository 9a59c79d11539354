import { MAX_L2_NETWORK_NUMBER } from '@unbounded/crds';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assignNumbers, networkMtu } from './index.ts';

const entries = (map: ReadonlyMap<string, number>): [string, number][] => [...map].sort(([a], [b]) => (a < b ? -1 : 1));

describe('the number of a Network', () => {
  it('is kept, and a new one gets the lowest that nobody has and no frame on its way may bear', () => {
    const networks = [
      { name: 'new', createdMs: 3 },
      { name: 'kept', number: 2, createdMs: 2 },
      { name: 'other', createdMs: 1 },
    ];
    expect(entries(assignNumbers(networks, new Set([1])))).toEqual([
      ['kept', 2],
      ['new', 4],
      ['other', 3],
    ]);
  });

  it('stays with the older of two that have the same one', () => {
    const networks = [
      { name: 'copy', number: 1, createdMs: 2 },
      { name: 'first', number: 1, createdMs: 1 },
    ];
    expect(entries(assignNumbers(networks))).toEqual([
      ['copy', 2],
      ['first', 1],
    ]);
  });

  it('is never another one’s, and does not change when it is assigned again', () => {
    const network = fc.record(
      { number: fc.integer({ min: 1, max: 6 }), createdMs: fc.nat(5) },
      { requiredKeys: ['createdMs'] },
    );
    fc.assert(
      fc.property(fc.array(network, { maxLength: 8 }), (some) => {
        const networks = some.map((one, at) => ({ ...one, name: `n${at}` }));
        const assigned = assignNumbers(networks);
        expect(new Set(assigned.values()).size).toBe(networks.length);
        const again = networks.map((one) => ({ ...one, number: assigned.get(one.name)! }));
        expect(entries(assignNumbers(again))).toEqual(entries(assigned));
      }),
    );
  });

  it('is not given where there is none left', () => {
    expect(assignNumbers([{ name: 'last', createdMs: 1 }], { has: () => true } as unknown as Set<number>)).toEqual(
      new Map(),
    );
    expect(MAX_L2_NETWORK_NUMBER).toBe(16_777_215);
  });
});

describe('the MTU of a network', () => {
  it('is what the narrowest link leaves, or less where that is asked for', () => {
    expect(networkMtu([1500, 1420])).toBe(1366);
    expect(networkMtu([1500, 1420], 1280)).toBe(1280);
    expect(networkMtu([1420], 1500)).toBe(1366);
    expect(networkMtu([], 1500)).toBe(1500);
    expect(networkMtu([])).toBeUndefined();
  });
});
