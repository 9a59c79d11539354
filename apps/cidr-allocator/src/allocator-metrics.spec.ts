import { createMetrics } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import { allocatorMetrics } from './allocator-metrics.ts';

test('series of a Site begin with 0, so that the first exhaustion is an increase, and end with the Site', async () => {
  const metrics = createMetrics();
  const allocator = allocatorMetrics(metrics);
  const seriesOf = async (site: string): Promise<string[]> =>
    (await metrics.render()).split('\n').filter((line) => line.includes(`site="${site}"`));
  allocator.state(['a', 'b'], [], 0);
  allocator.locatorState(['a'], []);
  expect(await seriesOf('a')).toEqual([
    'unbounded_net_controller_pod_cidr_exhaustion_total{site="a"} 0',
    'unbounded_net_controller_pod_cidr_waiting_nodes{site="a"} 0',
    'unbounded_net_controller_l2_locator_exhaustion_total{site="a"} 0',
    'unbounded_net_controller_l2_locator_waiting_nodes{site="a"} 0',
  ]);
  allocator.exhausted('b');
  allocator.state(['a', 'b'], [], 0);
  expect(await seriesOf('b')).toContain('unbounded_net_controller_pod_cidr_exhaustion_total{site="b"} 1');
  allocator.state(['b'], [], 0);
  allocator.locatorState([], []);
  expect(await seriesOf('a')).toEqual([]);
});
