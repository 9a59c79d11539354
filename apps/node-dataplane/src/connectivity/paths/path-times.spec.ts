import { nodeReport } from '@unbounded/status';
import { expect, test } from 'vitest';
import type { PathReport } from './messages.ts';
import { monotonicMs, type PathClocks, timedPath } from './path-times.ts';

const relayed: PathReport = {
  ...{ device: 'wg51820', publicKey: 'B', node: 'b', endpoint: '127.0.0.1:40000' },
  ...{ path: 'relay', reason: 'unvalidated', takenAtMs: 1000 },
};
const direct: PathReport = { ...relayed, path: 'direct', from: 'relay', reason: 'validated', takenAtMs: 61_000 };
const back: PathReport = { ...relayed, from: 'direct', reason: 'unanswered', takenAtMs: 121_000 };
const START_MS = Date.UTC(2026, 0, 1);
/** A wall clock that began with the monotonic one, and was set by so much. */
const at = (elapsedMs: number, setByMs = 0): PathClocks => ({ elapsedMs, wallMs: START_MS + elapsedMs + setByMs });

test('a path has the time of its last move, and that of each is its own', () => {
  const first = timedPath(undefined, relayed, at(1000));
  const moved = timedPath(first, direct, at(61_000));
  const movedBack = timedPath(moved, back, at(121_000));
  expect([first, moved, movedBack].map(({ sinceTime }) => sinceTime)).toEqual([
    '2026-01-01T00:00:01.000Z',
    '2026-01-01T00:01:01.000Z',
    '2026-01-01T00:02:01.000Z',
  ]);
});

test('the time is that of the decision, however late the message comes', () => {
  expect(timedPath(undefined, relayed, at(4321)).sinceTime).toBe('2026-01-01T00:00:01.000Z');
});

test('another reason or endpoint, or a clock that was set, changes no time of a path that stays', () => {
  const first = timedPath(undefined, relayed, at(1000));
  const later = timedPath(first, { ...relayed, from: 'relay', reason: 'peer', endpoint: '127.0.0.1:1' }, at(5000, 3e9));
  expect(later).toMatchObject({ reason: 'peer', endpoint: '127.0.0.1:1', sinceTime: first.sinceTime });
});

test('a thread that began again and found the path as it was moved nothing', () => {
  const first = timedPath(undefined, relayed, at(1000));
  expect(timedPath(first, { ...relayed, takenAtMs: 9000 }, at(9000)).sinceTime).toBe(first.sinceTime);
});

test.each([0, -START_MS - 1e12, 8e15 - START_MS])(
  'a wall clock that is wrong (set by %i ms) gives a valid report',
  (setByMs) => {
    const { sinceTime: pathSinceTime } = timedPath(undefined, relayed, at(1000, setByMs));
    const session = { rxBytes: 0, txBytes: 0, path: 'Relayed', pathReason: 'r', pathSinceTime };
    const peer = { protocol: 'WireGuard', health: {}, wireGuard: { wg51820: session } };
    const connectivity = { site: 's', role: 'worker', dataplane: 'ebpf', peers: { b: peer }, groups: {} };
    const report = { agentVersion: '1', isComplete: true, problems: [], drops: {}, connectivity };
    expect(nodeReport.parse(report).connectivity?.peers['b']?.wireGuard['wg51820']?.pathSinceTime).toBe(pathSinceTime);
  },
);

test('the monotonic clock goes on', () => {
  const before = monotonicMs();
  expect(monotonicMs()).toBeGreaterThanOrEqual(before);
});
