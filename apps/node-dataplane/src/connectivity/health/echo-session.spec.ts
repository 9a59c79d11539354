import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { startTicking } from '../../thread/ticking.ts';
import { createEchoSession } from './echo-session.ts';

const SETTINGS = { intervalMs: 100, detectMultiplier: 3 };

beforeEach(
  () =>
    void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'performance'] }),
);
afterEach(() => void vi.useRealTimers());

/** A gateway that returns echoes while it forwards. */
const through = (gateway: { forwards: boolean }, found = true) => {
  const changes: boolean[] = [];
  const sent: { sequence: bigint; token: Uint8Array }[] = [];
  const session = createEchoSession({
    settings: SETTINGS,
    forwards: found,
    transmit(sequence, token) {
      sent.push({ sequence, token });
      if (gateway.forwards) setTimeout(() => session.onReturned({ sequence, token }), 5);
      return true;
    },
    onChange: () => changes.push(session.forwards),
  });
  return {
    session,
    changes,
    sent,
    stop: startTicking(
      () => SETTINGS.intervalMs,
      () => session.tick(),
    ),
  };
};

describe('echoes through a gateway', () => {
  test('that come back say that it forwards, and change nothing', async () => {
    const { session, changes, sent, stop } = through({ forwards: true });
    await vi.advanceTimersByTimeAsync(1000);
    expect(sent.length).toBeGreaterThanOrEqual(9);
    expect(session.forwards).toBe(true);
    expect(changes).toEqual([]);
    stop();
  });

  test('that are lost say so after as many intervals as the multiplier, and at most one more', async () => {
    const gateway = { forwards: true };
    const { session, changes, stop } = through(gateway);
    await vi.advanceTimersByTimeAsync(500);
    gateway.forwards = false;
    await vi.advanceTimersByTimeAsync(290);
    expect(session.forwards).toBe(true);
    await vi.advanceTimersByTimeAsync(120);
    expect(changes).toEqual([false]);
    stop();
  });

  test('have to come back as often before it counts as forwarding again', async () => {
    const gateway = { forwards: false };
    const { session, changes, stop } = through(gateway, false);
    await vi.advanceTimersByTimeAsync(500);
    expect(session.forwards).toBe(false);
    gateway.forwards = true;
    await vi.advanceTimersByTimeAsync(200);
    expect(session.forwards).toBe(false);
    await vi.advanceTimersByTimeAsync(220);
    expect(changes).toEqual([true]);
    stop();
  });

  test('count once each, and only if they were sent', async () => {
    const { session, sent, stop } = through({ forwards: false });
    await vi.advanceTimersByTimeAsync(150);
    expect(session.onReturned(sent[0]!)).toBe('returned');
    expect(session.onReturned(sent[0]!)).toBe('unexpected');
    expect(session.onReturned({ ...sent[0]!, sequence: 999n })).toBe('unexpected');
    stop();
  });

  test('that are forged do not stand for those that were sent, nor keep these from counting', async () => {
    const { session, sent, stop } = through({ forwards: false }, false);
    await vi.advanceTimersByTimeAsync(150);
    const forged = { ...sent[0]!, token: sent[0]!.token.map((byte) => byte ^ 1) };
    for (let attempt = 0; attempt < 10; attempt++) expect(session.onReturned(forged)).toBe('token');
    expect(session.forwards).toBe(false);
    expect(session.onReturned(sent[0]!)).toBe('returned');
    stop();
  });

  test('have tokens that do not repeat', async () => {
    const { sent, stop } = through({ forwards: true });
    await vi.advanceTimersByTimeAsync(2000);
    expect(new Set(sent.map(({ token }) => Buffer.from(token).toString('hex'))).size).toBe(sent.length);
    stop();
  });

  test('are not missed while none can have come back yet', async () => {
    const changes: boolean[] = [];
    let isStarting = true;
    const session = createEchoSession({
      settings: SETTINGS,
      forwards: true,
      isStarting: () => isStarting,
      transmit: () => true,
      onChange: () => changes.push(session.forwards),
    });
    const stop = startTicking(
      () => SETTINGS.intervalMs,
      () => session.tick(),
    );
    await vi.advanceTimersByTimeAsync(1000);
    expect(changes).toEqual([]);
    isStarting = false;
    await vi.advanceTimersByTimeAsync(500);
    expect(changes).toEqual([false]);
    stop();
  });

  test('that could not be sent are not lost', async () => {
    const changes: boolean[] = [];
    const session = createEchoSession({
      settings: SETTINGS,
      forwards: true,
      transmit: () => false,
      onChange: () => changes.push(session.forwards),
    });
    const stop = startTicking(
      () => SETTINGS.intervalMs,
      () => session.tick(),
    );
    await vi.advanceTimersByTimeAsync(2000);
    expect(changes).toEqual([]);
    stop();
  });

  test('end with the session', async () => {
    const { sent, stop } = through({ forwards: true });
    await vi.advanceTimersByTimeAsync(300);
    stop();
    const before = sent.length;
    await vi.advanceTimersByTimeAsync(1000);
    expect(sent.length).toBe(before);
  });
});
