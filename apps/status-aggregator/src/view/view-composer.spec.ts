import { silentLogger as logger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import type { ViewInputs } from '@unbounded/status';
import { afterEach, describe, expect, it } from 'vitest';
import { createHeldReports } from '../reports/held-reports.ts';
import { createViewComposer } from './view-composer.ts';
import { createViewHistory } from './view-history.ts';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const objects = (): Omit<ViewInputs, 'reports'> => ({
  sites: [{ name: 's1' }],
  pools: [],
  nodes: [{ name: 'n1', site: 's1', ready: 'True', faults: [], knownMs: 0 }],
});

const bed = (objectsOf: () => Omit<ViewInputs, 'reports'> | undefined) => {
  const clocks = { elapsed: () => performance.now(), now: () => new Date() };
  const reports = createHeldReports(clocks);
  const history = createViewHistory('h');
  const part = createViewComposer({ objects: objectsOf, reports, history, now: clocks.now, logger, everyMs: 10 });
  stops.push(() => void part.stop());
  return { reports, history, part };
};

describe('the view', () => {
  it('is not composed, and the program not ready, before the objects of the cluster are known', async () => {
    let known: Omit<ViewInputs, 'reports'> | undefined;
    const { history, part } = bed(() => known);
    await part.start();
    expect([history.current(), part.isReady]).toEqual([undefined, false]);
    known = objects();
    await until('the view follows', () => part.isReady === true);
    expect(history.current()?.view.nodes['n1']?.state).toBe('Unknown');
  });

  it('follows the reports', async () => {
    const { reports, history, part } = bed(objects);
    await part.start();
    const report = { agentVersion: '0.1.0', isComplete: true, problems: [], drops: {} };
    await reports.accept('n1', { epoch: 'e', revision: 1, report });
    await until('the view follows', () => history.current()?.view.nodes['n1']?.state === 'Healthy');
    await reports.accept('stranger', { epoch: 'e', revision: 1, report });
    expect(Object.keys(history.current()!.view.nodes)).toEqual(['n1']);
  });

  it('goes on after objects that cannot be composed', async () => {
    let isBroken = true;
    const { history, part } = bed(() => {
      if (isBroken) throw new Error('broken');
      return objects();
    });
    await part.start();
    expect(part.notices()).toEqual([expect.stringContaining('stands as it was')]);
    isBroken = false;
    expect(await until('the view', () => history.current())).toMatchObject({ position: 'h-1' });
    expect(part.notices()).toEqual([]);
  });
});
