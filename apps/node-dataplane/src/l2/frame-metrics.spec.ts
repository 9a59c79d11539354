import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { L2_REASONS, type L2Reason } from '@unbounded/bpf-maps/l2';
import { createMetrics } from '@unbounded/telemetry';
import { describe, expect, test } from 'vitest';
import { createFrameMetrics } from './frame-metrics.ts';
import type { L2Maps } from './maps.ts';

const DROPS = L2_REASONS.filter((reason) => reason.startsWith('drop_'));
const PORT = 7;
const owners = new Map([[PORT, { network: 'lan', endpoint: 'default/pod' }]]);

/** What the programs have counted of a reason, on two processors. */
const mapsOf = (reason: L2Reason, values: readonly [bigint, bigint]): Pick<L2Maps, 'counters' | 'totals'> =>
  ({
    counters: { entries: () => [[{ ifindex: PORT, reason }, values]] },
    totals: { entries: () => [[reason, values]] },
  }) as unknown as Pick<L2Maps, 'counters' | 'totals'>;

describe.each(DROPS)('frames that are dropped as %s', (reason) => {
  test('raise the metric of the port, and that of what other nodes sent', async () => {
    const metrics = createMetrics();
    const frames = createFrameMetrics(metrics);
    frames.observe(mapsOf(reason, [0n, 0n]), owners);
    frames.observe(mapsOf(reason, [2n, 3n]), owners);
    const text = await metrics.render();
    expect(text).toContain(`unbounded_l2_port_frames_total{network="lan",endpoint="default/pod",result="${reason}"} 5`);
    expect(text).toContain(`unbounded_l2_received_frames_dropped_total{reason="${reason.slice('drop_'.length)}"} 5`);
  });
});

test('the series of a port end with it', async () => {
  const metrics = createMetrics();
  const frames = createFrameMetrics(metrics);
  frames.observe(mapsOf('drop_rate', [1n, 0n]), owners);
  frames.observe(mapsOf('drop_rate', [1n, 0n]), new Map());
  expect(await metrics.render()).not.toContain('unbounded_l2_port_frames_total{');
});

/** The kernel never refuses the room that a test's frame needs. */
const UNPROVOKED = new Set<L2Reason>(['drop_encap']);

test('each reason is provoked by a frame in the specifications of the programs', () => {
  const folder = join(import.meta.dirname, '../../../../bpf');
  const specs = readdirSync(folder).filter((file) => /l2.*\.(bpf|kernel)\.spec\.ts$/.test(file));
  const text = specs.map((file) => readFileSync(join(folder, file), 'utf8')).join('');
  expect(DROPS.filter((reason) => !text.includes(`'${reason}'`) && !text.includes(`${reason}:`))).toEqual([
    ...UNPROVOKED,
  ]);
});
