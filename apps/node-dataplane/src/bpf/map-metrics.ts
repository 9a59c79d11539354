import type { Metrics } from '@unbounded/telemetry';

/** How full the eBPF maps are, read from the kernel whenever somebody asks for the metrics. */

export interface CountedMap {
  readonly info: { readonly maxEntries: number };
  count(): number;
}

/**
 * @param maps by the names that the metrics have
 * @returns ends the series; to be called before the maps are closed
 */
export const watchMaps = (metrics: Metrics, maps: Readonly<Record<string, CountedMap>>): Disposable => {
  const entries = metrics.gauge({
    name: 'unbounded_bpf_map_entries',
    help: 'Entries of an eBPF map.',
    labels: ['map'],
  });
  const capacity = metrics.gauge({
    name: 'unbounded_bpf_map_max_entries',
    help: 'Entries for which an eBPF map has room.',
    labels: ['map'],
  });
  for (const [map, { info }] of Object.entries(maps)) capacity.set({ map }, info.maxEntries);
  const refresh = metrics.onRender(() => {
    for (const [map, counted] of Object.entries(maps)) entries.set({ map }, counted.count());
  });
  return {
    [Symbol.dispose]() {
      refresh[Symbol.dispose]();
      for (const map of Object.keys(maps)) for (const gauge of [entries, capacity]) gauge.remove({ map });
    },
  };
};
