import { describe, expect, it } from 'vitest';
import type { Push } from '@unbounded/status';
import { createHeldReports } from './held-reports.ts';

const report = { agentVersion: '0.1.0', isComplete: true, problems: [], drops: {} };
const full = (epoch = 'e1'): Push => ({ epoch, revision: 1, report });

const bed = () => {
  let nowMs = 0;
  const reports = createHeldReports({ elapsed: () => nowMs, now: () => new Date(Date.UTC(2026, 0, 1)) });
  return { reports, pass: (ms: number) => (nowMs += ms) };
};

describe('the last report of a node', () => {
  it('has the age since its receipt', async () => {
    const { reports, pass } = bed();
    expect(await reports.accept('n1', full())).toBe('accepted');
    pass(12_000);
    expect(reports.report('n1')).toMatchObject({ ageMs: 12_000, report: { agentVersion: '0.1.0' } });
    expect(reports.received().get('n1')).toMatchObject({ ageMs: 12_000, time: '2026-01-01T00:00:00.000Z' });
  });

  it('is renewed by a delta, and asked for whole when that does not follow it', async () => {
    const { reports, pass } = bed();
    await reports.accept('n1', full());
    pass(10_000);
    const problems = [{ reason: 'R', message: 'm' }];
    expect(await reports.accept('n1', { epoch: 'e1', revision: 2, base: 1, patch: { problems } })).toBe('accepted');
    expect(reports.report('n1')).toMatchObject({ ageMs: 0, report: { problems } });
    expect(await reports.accept('n1', { epoch: 'e1', revision: 4, base: 3, patch: {} })).toBe('resync');
    expect(await reports.accept('n2', { epoch: 'e1', revision: 2, base: 1, patch: {} })).toBe('resync');
  });

  it('stays when another one is not valid', async () => {
    const { reports } = bed();
    await reports.accept('n1', full());
    const bad = { epoch: 'e1', revision: 2, base: 1, patch: { agentVersion: 7 } };
    expect(await reports.accept('n1', bad)).toMatchObject({
      error: expect.stringMatching(/^agentVersion: 7: /) as string,
    });
    expect(reports.report('n1')?.report.agentVersion).toBe('0.1.0');
  });

  it('goes a minute after its Node', async () => {
    const { reports, pass } = bed();
    await reports.accept('n1', full());
    pass(60_000);
    reports.forget(() => false);
    expect(reports.report('n1')).toBeDefined();
    pass(1);
    reports.forget((name) => name === 'n1');
    expect(reports.report('n1')).toBeDefined();
    reports.forget(() => false);
    expect(reports.report('n1')).toBeUndefined();
  });
});
