import { randomBytes } from 'node:crypto';

import type { Gateway, GatewayPool, SiteNode, SiteNodeSlice } from '@unbounded/crds';
import { expect, test } from 'vitest';

import { MOST_KEYS, planRelayKeys, poolKeys, sliceKeys } from './relay-keys.plan.ts';

const key = (): string => randomBytes(32).toString('base64');
const sliceOf = (...nodes: readonly Partial<SiteNode>[]) => ({ nodes }) as unknown as SiteNodeSlice;
const poolOf = (...nodes: readonly Partial<Gateway>[]) => ({ status: { nodes } }) as unknown as GatewayPool;

test('keys of workers and gateways, those that follow as well, each once and in one order', () => {
  const [a, b, c, d] = [key(), key(), key(), key()] as [string, string, string, string];
  const slices = [sliceOf({ wireGuardPublicKey: a, wireGuardNextPublicKey: b }, {}, { wireGuardPublicKey: c })];
  const pools = [poolOf({ wireGuardPublicKey: d }), poolOf({ wireGuardPublicKey: c }), {} as GatewayPool];
  const { text, count, omitted } = planRelayKeys(slices, pools);
  expect(text.split('\n')).toEqual([...[a, b, c, d].toSorted(), '']);
  expect([count, omitted]).toEqual([4, 0]);
  expect(planRelayKeys([sliceOf({ wireGuardPublicKey: c }), ...slices], pools)).toMatchObject({ text });
  expect(planRelayKeys([], pools).text).not.toBe(text);
});

test('what a node gives out for a key and is none comes into no list', () => {
  const slices = [
    sliceOf({ wireGuardPublicKey: 'x' }, { wireGuardPublicKey: `${key()}\n${key()}` }, { wireGuardPublicKey: '' }),
  ];
  expect(planRelayKeys(slices, [])).toMatchObject({ text: '', count: 0 });
});

test('10,000 nodes that exchange their keys fit an object; what is beyond that is counted', () => {
  const nodes = Array.from({ length: 10_000 }, () => ({ wireGuardPublicKey: key(), wireGuardNextPublicKey: key() }));
  const { text, count, omitted } = planRelayKeys([sliceOf(...nodes)], []);
  expect([count, omitted]).toEqual([20_000, 0]);
  expect(text.length).toBeLessThan(1_000_000);
  const more = Array.from({ length: MOST_KEYS + 7 }, () => ({ wireGuardPublicKey: key() }));
  expect(planRelayKeys([sliceOf(...more)], [])).toMatchObject({ count: MOST_KEYS, omitted: 7 });
});

test('the list changes with keys and with nothing else of these objects', () => {
  const a = key();
  expect(sliceKeys(sliceOf({ wireGuardPublicKey: a, podCIDRs: ['10.0.0.0/24'] }))).toBe(
    sliceKeys(sliceOf({ wireGuardPublicKey: a })),
  );
  expect(poolKeys(poolOf({ wireGuardPublicKey: a }))).not.toBe(poolKeys(poolOf({ wireGuardPublicKey: key() })));
});
