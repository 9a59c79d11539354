import type { ProbeRequest } from '@unbounded/health';
import type { ProbePlan } from '@unbounded/topology';
import { afterEach, expect, test } from 'vitest';
import { createSession, type Session } from './session.ts';

const plan: ProbePlan = {
  ...{ node: 'g1', publicKey: 'k', family: 4, localAddress: '100.64.0.1', address: '100.64.1.1' },
  ...{ intervalMs: 60_000, detectMultiplier: 3 },
};
let session: Session | undefined;
afterEach(() => session?.stop());

test.each([0n, 2n ** 64n - 1n])('a peer that answers with the time %s makes no other round trip of it', (timeNs) => {
  const sent: ProbeRequest[] = [];
  session = createSession({
    ...{ plan, nonce: 7n, transmit: (request) => void sent.push(request) },
    onVerdict: () => undefined,
  });
  const sequence = session.send('health', 64);
  const answer = session.onReply({ type: 'reply', nonce: 7n, sequence, timeNs, sizeReceived: 64 });
  expect(answer?.rttMs).toBeGreaterThanOrEqual(0);
  expect(answer?.rttMs).toBeLessThan(10_000);
  expect(session.rttMs).toBe(answer?.rttMs);
});
