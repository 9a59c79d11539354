import assert from 'node:assert/strict';
import type { FuzzTarget } from '@unbounded/testing';
import { composeView } from '../view/compose.ts';
import { acceptPush, type HeldReport, parsePush } from './push.ts';

/** Pushes of a hostile node: refused with a message of bounded length, or held and part of a view that tells of no other node. */

const first = parsePush({
  ...{ epoch: 'e', revision: 1 },
  report: { agentVersion: '1', isComplete: true, problems: [], drops: {} },
});
assert.ok(first.ok);
const accepted = acceptPush(undefined, first.value);
assert.ok(accepted.ok && accepted.value !== 'resync');
const held: HeldReport = accepted.value;

const LONGEST_ERROR = 4096;
const NOW = '2026-01-01T00:00:00Z';

const compose = ({ report }: HeldReport): void => {
  const node = { ready: 'True' as const, faults: [], knownMs: 60_000, site: 's' };
  const inputs = {
    sites: [{ name: 's' }],
    pools: [{ name: 'p', gateways: ['g'], connectedSites: ['s'] }],
    nodes: ['n', 'g'].map((name) => ({ ...node, name })),
    reports: new Map([['n', { report, ageMs: 0, time: NOW }]]),
  };
  const view = composeView(inputs, undefined, NOW);
  assert.deepEqual(Object.keys(view.nodes), ['n', 'g']);
  assert.deepEqual(Object.keys(view.reach), ['s']);
};

const checkError = (error: string): void => assert.ok(error.length > 0 && error.length < LONGEST_ERROR, error);

const valueOf = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
};

/** The document as a push, as a whole report, and as a delta of what is held. */
const run = (bytes: Uint8Array): void => {
  const value = valueOf(bytes);
  if (value === undefined) return;
  const pushes = [
    value,
    { epoch: 'e', revision: 2, report: value },
    { epoch: 'e', revision: 2, base: 1, patch: value },
  ];
  for (const one of pushes) {
    const parsed = parsePush(one);
    if (!parsed.ok) {
      checkError(parsed.error);
      continue;
    }
    const result = acceptPush(held, parsed.value);
    if (!result.ok) checkError(result.error);
    else if (result.value !== 'resync') compose(result.value);
  }
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
};

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

export const target: FuzzTarget = {
  run,
  seeds: [
    '{"epoch":"e","revision":2,"base":1,"patch":{"problems":[{"reason":"R","message":"m"}]}}',
    '{"agentVersion":"1","isComplete":false,"problems":[],"drops":{"a":1},"connectivity":{"site":"s","role":"worker","dataplane":"ebpf","peers":{},"groups":{}}}',
    '{"connectivity":{"site":"s","role":"worker","dataplane":"ebpf","peers":{},"groups":{"g":{"site":"s","family":"IPv4","members":{"constructor":{"tier":0,"isActive":true}}}}}}',
    '{"connectivity":null,"__proto__":{"polluted":true}}',
  ].map(encode),
  tokens: [
    '"__proto__":',
    '"constructor":',
    '"report":',
    '"patch":',
    '"peers":{"n":',
    '"health":{"ipv4":{"state":',
    'null',
    '1e999',
  ].map(encode),
  maxBytes: 800,
};
