import { type EgressNodeSlice, GROUP_VERSION } from '@unbounded/crds';
import { beforeEach, expect, test } from 'vitest';

import { type AgentLife, createAgentLife } from './agent-life.ts';

const NODES = [{ metadata: { name: 'n1', uid: 'u1' } }];
let nowMs: number;
let life: AgentLife;
beforeEach(() => {
  nowMs = 100_000;
  life = createAgentLife({ timeoutMs: 15_000, now: () => nowMs });
});

const slice = (heartbeat: number | undefined, index = 0): EgressNodeSlice => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressNodeSlice',
  metadata: { name: `n1-${index}` },
  spec: { nodeName: 'n1', nodeUID: 'u1', index },
  status: heartbeat === undefined ? {} : { heartbeat },
});
/** An agent that sends heartbeats for this long. */
const beat = (first: number, forMs: number): void => {
  for (let passed = 0; passed <= forMs; passed += 5000) {
    life.note(slice(first + passed));
    nowMs += 5000;
  }
};

test('an agent without a heartbeat is not alive, and nobody waits for it', () => {
  life.note(slice(undefined));
  expect(life.isAlive('u1')).toBe(false);
  expect(life.untilKnownMs(NODES)).toBe(0);
});

test('a heartbeat that was there before us says nothing until it changes', () => {
  life.note(slice(7));
  expect(life.isAlive('u1')).toBe(false);
  expect(life.untilKnownMs(NODES)).toBe(15_000);
  nowMs += 3000;
  life.note(slice(7));
  expect(life.untilKnownMs(NODES)).toBe(12_000);
  life.note(slice(8));
  expect(life.untilKnownMs(NODES)).toBe(0);
  expect(life.isAlive('u1')).toBe(true);
});

test('one that does not change is known to be dead after the timeout; a node that is gone is not waited for', () => {
  life.note(slice(7));
  expect(life.untilKnownMs([])).toBe(0);
  nowMs += 15_001;
  expect(life.untilKnownMs(NODES)).toBe(0);
  expect(life.isAlive('u1')).toBe(false);
});

test.each([0, 250, 1700, 1999])(
  'agents that start within moments of each other, %i ms later too, count from the same moment on',
  (laterMs) => {
    nowMs += laterMs;
    const other = { ...slice(1), spec: { ...slice(1).spec, nodeUID: 'u2' } };
    life.note(slice(undefined));
    life.note({ ...other, status: {} });
    life.note(slice(1));
    nowMs += 300;
    life.note(other);
    nowMs += 1699;
    expect(life.alive()).toEqual(new Set());
    nowMs += 1;
    expect(life.alive()).toEqual(new Set(['u1', 'u2']));
  },
);

test('a silent agent is dead after the timeout, and counts again only when it has been back for as long', () => {
  life.note(slice(undefined));
  beat(1, 20_000);
  expect(life.isAlive('u1')).toBe(true);
  nowMs += 10_001;
  expect(life.isAlive('u1')).toBe(false);
  beat(100, 5000);
  expect(life.isAlive('u1')).toBe(false);
  beat(200, 10_000);
  expect(life.isAlive('u1')).toBe(true);
});

test('a slice that was deleted and made anew, and slices without a heartbeat, change nothing', () => {
  life.note(slice(undefined));
  beat(1, 10_000);
  life.note(slice(undefined));
  life.note(slice(undefined, 1));
  expect(life.isAlive('u1')).toBe(true);
  life.forget('u1');
  expect(life.isAlive('u1')).toBe(false);
});
