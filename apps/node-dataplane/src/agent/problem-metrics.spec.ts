import { createMetrics } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import { createProblemMetrics } from './problem-metrics.ts';

test('problems are counted by reason, and a reason that is none any more has no series', async () => {
  const metrics = createMetrics();
  const told = createProblemMetrics(metrics);
  const seriesNow = async (): Promise<string[]> =>
    (await metrics.render()).split('\n').filter((line) => line.startsWith('unbounded_agent_problems'));
  const problem = (reason: string) => ({ reason, message: 'some words' });
  told([problem('MapFull'), problem('PeerUnhealthy'), problem('PeerUnhealthy')]);
  expect(await seriesNow()).toEqual([
    'unbounded_agent_problems{reason="MapFull"} 1',
    'unbounded_agent_problems{reason="PeerUnhealthy"} 2',
  ]);
  told([problem('MapFull')]);
  expect(await seriesNow()).toEqual(['unbounded_agent_problems{reason="MapFull"} 1']);
});
