import { createMetrics } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import { watchMaps } from './map-metrics.ts';

const seriesOf = (text: string): string[] => text.split('\n').filter((line) => line.startsWith('unbounded_bpf_map'));

test('a map is counted when somebody asks, and its series end with it', async () => {
  const metrics = createMetrics();
  let count = 2;
  const watch = watchMaps(metrics, { endpoints_v4: { info: { maxEntries: 16 }, count: () => count } });
  count = 3;
  expect(seriesOf(await metrics.render())).toEqual([
    'unbounded_bpf_map_entries{map="endpoints_v4"} 3',
    'unbounded_bpf_map_max_entries{map="endpoints_v4"} 16',
  ]);
  watch[Symbol.dispose]();
  expect(seriesOf(await metrics.render())).toEqual([]);
});
