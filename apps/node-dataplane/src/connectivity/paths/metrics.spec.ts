import { createMetrics } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import type { PathReport } from './messages.ts';
import { createPathMetrics } from './metrics.ts';

const report: PathReport = {
  device: 'wg51820',
  publicKey: 'B',
  node: 'b',
  path: 'relay',
  reason: 'unvalidated',
  endpoint: '127.0.0.1:40000',
  takenAtMs: 1,
};

test('moves are counted with their reason, first paths and other endpoints are no moves, and peers are counted by path', async () => {
  const metrics = createMetrics();
  const counted = createPathMetrics(metrics);
  counted.moved(report);
  counted.moved({ ...report, from: 'relay', endpoint: '127.0.0.1:40001' });
  counted.moved({ ...report, from: 'relay', path: 'direct', reason: 'validated' });
  counted.paths([report, { ...report, path: 'direct' }, report]);
  counted.measured({ sent: 2, received: 1, rejected: { mac: 3 } });
  const text = await metrics.render();
  expect(text.match(/^unbounded_\w+\{.*\} \d+$|^unbounded_\w+ \d+$/gm)?.sort()).toEqual([
    'unbounded_path_moves_total{from="relay",to="direct",reason="validated"} 1',
    'unbounded_path_probes_received_total 1',
    'unbounded_path_probes_rejected_total{reason="mac"} 3',
    'unbounded_path_probes_sent_total 2',
    'unbounded_wireguard_peer_paths{path="direct"} 1',
    'unbounded_wireguard_peer_paths{path="relay"} 2',
  ]);
});
