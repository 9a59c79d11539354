import type { Node } from '@unbounded/kube';
import { MOST_AT_ONCE, SLOWEST_MS } from '@unbounded/membership';
import { nodeObject } from '@unbounded/testing';
import { expect, test } from 'vitest';

import { createReadiness, relayNodeFingerprint } from './relay-readiness.ts';

const node = (name: string, isReady: boolean, address = '10.1.0.1'): Node => {
  const { status, ...rest } = nodeObject({ name, internalIPs: [address] });
  const condition = {
    type: 'Ready',
    status: isReady ? 'True' : 'False',
    reason: 'x',
    message: '',
    lastTransitionTime: '',
  };
  return { ...rest, status: { ...status, conditions: [condition] } };
};

test('a node that is ready and not ready by turns changes where relays are found at the stated rate, and no other node', () => {
  let nowMs = 0;
  const readiness = createReadiness(() => nowMs);
  const seen: string[] = [];
  for (let step = 0; nowMs < 5 * SLOWEST_MS; step++, nowMs += 1000) {
    const given = [node('flapping', step % 2 === 0, `10.1.0.${step % 200}`), node('steady', step < 100)];
    const [flapping, steady] = readiness.accept(given).standing;
    seen.push(relayNodeFingerprint(flapping!));
    expect(relayNodeFingerprint(steady!)).toBe(relayNodeFingerprint(given[1]!));
    expect(flapping!.status?.addresses).toEqual(given[0]!.status?.addresses);
  }
  const changes = seen.filter((state, i) => i > 0 && state !== seen[i - 1]).length;
  expect(changes).toBeGreaterThan(4);
  expect(changes).toBeLessThanOrEqual(MOST_AT_ONCE + 5);
});
