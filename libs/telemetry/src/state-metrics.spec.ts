import { expect, test } from 'vitest';

import { createMetrics } from './metrics.ts';
import { createStateMetrics } from './state-metrics.ts';

test('what a replica said of the cluster as its leader is gone when it no longer leads, and what it counted stays', async () => {
  const all = createMetrics();
  const { metrics, forget } = createStateMetrics(all);
  const waiting = metrics.gauge({ name: 'waiting', help: 'w', labels: ['site'] });
  const conflicts = metrics.gauge({ name: 'conflicts', help: 'c' });
  waiting.set({ site: 's' }, 3);
  conflicts.set(2);
  metrics.counter({ name: 'given_total', help: 'g' }).inc();
  forget();
  const text = await all.render();
  expect(text).not.toContain('waiting{');
  expect(text).toContain('conflicts 0');
  expect(text).toContain('given_total 1');
  waiting.set({ site: 's' }, 1);
  expect(await all.render()).toContain('waiting{site="s"} 1');
});
