import type { ObservedTable } from '@unbounded/nftables';
import { createMetrics } from '@unbounded/telemetry';
import { beforeEach, expect, test } from 'vitest';
import { createDropReader, type DropReader } from './drops.ts';
import { DROP_REASONS, type DropReason } from './guard-expressions.ts';

/** NFTA_COUNTER_PACKETS: u16 length, u16 type 2, u64 in network order. */
const counter = (packets: number): Uint8Array => {
  const bytes = new Uint8Array(12);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, 12, true);
  view.setUint16(2, 2, true);
  view.setBigUint64(4, BigInt(packets));
  return bytes;
};

/** Counts by port and reason, as the kernel tells them. */
const tableOf = (counts: Readonly<Record<number, Partial<Record<DropReason, number>>>>): ObservedTable => ({
  counters: [],
  chains: DROP_REASONS.map((reason) => {
    const packets = Object.values(counts).reduce((sum, one) => sum + (one[reason] ?? 0), 0);
    return { name: `drop_${reason}`, rules: [{ instructions: [{ name: 'counter', data: counter(packets) }] }] };
  }),
  sets: DROP_REASONS.map((reason) => ({
    ...{ name: `dropped_${reason}`, keyType: 20, keyLength: 4, flags: 48, fields: [] },
    elements: Object.entries(counts).flatMap(([port, one]) =>
      one[reason] === undefined
        ? []
        : [{ key: Uint8Array.of(Number(port), 0, 0, 0), isEnd: false, packets: one[reason] }],
    ),
  })),
});

const MINUTE = 60_000;
const podOf = (port: number): string | undefined => ({ 5: 'default/a', 6: 'default/b' })[port];
let nowMs: number;
let metrics: ReturnType<typeof createMetrics>;
let drops: DropReader;
beforeEach(() => {
  nowMs = 0;
  metrics = createMetrics();
  drops = createDropReader(metrics, () => nowMs);
});
const counted = async (reason: DropReason): Promise<number> =>
  Number(
    new RegExp(`unbounded_pod_frames_dropped_total\\{reason="${reason}"\\} (\\d+)`).exec(await metrics.render())?.[1],
  );

test('frames are counted once, by reason, also when the kernel’s counters begin anew', async () => {
  drops.read(tableOf({ 5: { arp: 3, mac: 1 } }), podOf);
  drops.read(tableOf({ 5: { arp: 4, mac: 1 } }), podOf);
  expect([await counted('arp'), await counted('mac'), await counted('nd')]).toEqual([4, 1, 0]);
  drops.reset();
  drops.read(tableOf({ 5: { arp: 4 } }), podOf);
  expect(await counted('arp')).toBe(8);
});

test('a pod is named with what it did since it was named last, and at most every ten minutes', () => {
  drops.read(tableOf({ 5: { arp: 3 }, 6: { ipv4: 1, nd: 2 } }), podOf);
  const notes = drops.takeNotes();
  expect(notes).toEqual([
    expect.stringMatching(/^pod default\/a .*: arp 3$/),
    expect.stringMatching(/default\/b .*: ipv4 1, nd 2$/),
  ]);
  drops.read(tableOf({ 5: { arp: 5 }, 6: { ipv4: 1, nd: 2 } }), podOf);
  nowMs = 10 * MINUTE - 1;
  expect(drops.takeNotes()).toEqual([]);
  drops.read(tableOf({ 5: { arp: 9 }, 6: { ipv4: 1, nd: 2 } }), podOf);
  nowMs = 10 * MINUTE;
  expect(drops.takeNotes()).toEqual([expect.stringMatching(/default\/a .*: arp 6$/)]);
});

test('a port of no pod, and an element that expired, name nobody', () => {
  drops.read(tableOf({ 9: { arp: 3 } }), podOf);
  drops.read(tableOf({}), podOf);
  expect(drops.takeNotes()).toEqual([]);
});
