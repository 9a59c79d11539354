import { composeView } from '@unbounded/status';
import { describe, expect, it } from 'vitest';
import type { ViewUpdate } from '../intake.port.ts';
import { createRelayedView } from './relayed-view.ts';

const view = composeView({ sites: [{ name: 's1' }], pools: [], nodes: [], reports: new Map() }, undefined, 't');
const at = (sequence: number, history = 'h') => ({ history, sequence });
const patchOf = (nodes: number) => ({ summary: { nodes } });
const updateOf = (sequence: number): ViewUpdate => ({ position: `h-${sequence}`, patch: patchOf(sequence) });

const bed = () => {
  const relayed = createRelayedView();
  const told: ViewUpdate[] = [];
  relayed.subscribe((update) => void told.push(update));
  return { relayed, told };
};

describe('a view that another replica composed', () => {
  it('is followed by the next update alone', () => {
    const { relayed, told } = bed();
    expect(relayed.apply(at(1), patchOf(1))).toBe('gap');
    relayed.load({ position: at(5), view }, []);
    expect(relayed.apply(at(5), patchOf(5))).toBe('known');
    expect(relayed.apply(at(7), patchOf(7))).toBe('gap');
    expect(relayed.apply(at(6, 'other'), patchOf(6))).toBe('gap');
    for (const patch of [null, [], 'x', { summary: null }, { sites: 7 }])
      expect(relayed.apply(at(6), patch)).toBe('invalid');
    expect(relayed.apply(at(6), patchOf(6))).toBe('applied');
    expect(relayed.current()).toMatchObject({ position: 'h-6', view: { summary: { nodes: 6 } } });
    expect(told).toEqual([{ position: 'h-5', patch: undefined }, updateOf(6)]);
  });

  it('may have words of a later version, which are relayed', () => {
    const { relayed } = bed();
    relayed.load({ position: at(5), view }, []);
    expect(relayed.apply(at(6), { sites: { s1: { state: 'Drained' } } })).toBe('applied');
    expect(relayed.current()!.view.sites['s1']).toMatchObject({ state: 'Drained', nodes: 0 });
    expect(relayed.apply(at(7), { sites: { s1: { state: 7 } } })).toBe('invalid');
    expect(relayed.apply(at(7), { sites: { s1: { state: 'x'.repeat(65) } } })).toBe('invalid');
  });

  it('is told from a snapshot by the updates that led to it, or as a whole', () => {
    const { relayed, told } = bed();
    relayed.load({ position: at(5), view }, [3, 4, 5].map(updateOf));
    expect(relayed.since('h-2')).toEqual([3, 4, 5].map(updateOf));
    expect(relayed.since('h-1')).toBeUndefined();
    relayed.load({ position: at(8), view }, [6, 7, 8, 9].map(updateOf));
    expect(told.slice(1)).toEqual([6, 7, 8].map(updateOf));
    relayed.load({ position: at(12), view }, [10, 12].map(updateOf));
    expect(told.at(-1)).toEqual({ position: 'h-12', patch: undefined });
    expect(relayed.since('h-10')).toBeUndefined();
    relayed.load({ position: at(1, 'g'), view }, []);
    expect(told.at(-1)).toEqual({ position: 'g-1', patch: undefined });
    expect(relayed.since('h-12')).toBeUndefined();
  });

  it('sends a client that was further on nothing that it has had', () => {
    const { relayed } = bed();
    relayed.load({ position: at(5), view }, []);
    expect(relayed.since('h-7')).toEqual([]);
    expect(relayed.since('h-900')).toBeUndefined();
    for (const text of ['h-0', 'h--1', 'h-x', '', 'g-5']) expect(relayed.since(text)).toBeUndefined();
  });

  it('keeps as many updates as a replica of its own', () => {
    const { relayed } = bed();
    relayed.load({ position: at(1), view }, []);
    for (let sequence = 2; sequence <= 400; sequence++) relayed.apply(at(sequence), patchOf(sequence));
    expect(relayed.since('h-200')).toHaveLength(200);
    expect(relayed.since('h-199')).toBeUndefined();
  });

  it('keeps as much of them as a replica of its own, whatever nodes report', () => {
    const { relayed } = bed();
    relayed.load({ position: at(1), view }, []);
    const owners = Array.from({ length: 300_000 }, (_, index) => `n${index}`);
    for (let sequence = 2; sequence <= 9; sequence++)
      expect(relayed.apply(at(sequence), { egress: { [`192.0.2.${sequence}`]: { owners } } })).toBe('applied');
    expect(relayed.since('h-8')).toHaveLength(1);
    expect(relayed.since('h-1')).toBeUndefined();
  });
});
