import { createMetrics } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import type { PathReport } from './messages.ts';
import { createPathMetrics } from './metrics.ts';

const report: PathReport = {
  device: 'wg51820',
  publicKey: 'B',
  node: 'b',
  path: 'relay',
  reason: 'unproven',
  endpoint: '127.0.0.1:40000',
};

test('moves are counted with their reason, first paths and other endpoints are no moves, and peers are counted by path', async () => {
  const metrics = createMetrics();
  const counted = createPathMetrics(metrics);
  counted.moved(report);
  counted.moved({ ...report, from: 'relay', endpoint: '127.0.0.1:40001' });
  counted.moved({ ...report, from: 'relay', path: 'direct', reason: 'proven' });
  counted.paths([report, { ...report, path: 'direct' }, report]);
  counted.measured({ sent: 2, received: 1, rejected: { mac: 3 } });
  const text = await metrics.render();
  expect(text.match(/^unbounded_path_\w+\{.*\} \d+$|^unbounded_path_\w+ \d+$/gm)?.sort()).toEqual([
    'unbounded_path_moves_total{from="relay",to="direct",reason="proven"} 1',
    'unbounded_path_peers{path="direct"} 1',
    'unbounded_path_peers{path="relay"} 2',
    'unbounded_path_probes_received_total 1',
    'unbounded_path_probes_rejected_total{reason="mac"} 3',
    'unbounded_path_probes_sent_total 2',
  ]);
});
