import { counter, MAPS } from '@unbounded/bpf-maps';
import { L2_MAP_LAYOUTS, L2_MAPS, l2CounterKey, l2LayoutFingerprint, l2TotalKey } from '@unbounded/bpf-maps/l2';
import { type BpfObject, openMaps } from '@unbounded/libbpf-ts';
import type { Loaded } from '../bpf/attachments.ts';
import { hasKernelFunction, KERNEL_CONTEXT } from '../bpf/kernel-functions.ts';
import { loadPinned } from '../bpf/load-pinned.ts';
import type { KernelWrites } from '../kernel/kernel-writes.ts';

/** The maps of stretched L2: pinned, so that they outlive this process. */

const counting = <M extends Readonly<Record<string, object>>>(maps: M, countWrites: KernelWrites['map']): M =>
  Object.fromEntries(Object.entries(maps).map(([name, map]) => [name, countWrites(map)])) as M;

const mapsOf = (object: BpfObject, countWrites: KernelWrites['map']) => ({
  ...counting(openMaps(object, L2_MAP_LAYOUTS), countWrites),
  counters: object.perCpuMap('unbounded_l2_counters', l2CounterKey, counter),
  totals: object.perCpuMap('unbounded_l2_totals', l2TotalKey, counter),
});
export type L2Maps = ReturnType<typeof mapsOf>;

export interface LoadedL2 extends Loaded {
  readonly maps: L2Maps;
}

export interface L2Files {
  /** The compiled programs. */
  readonly objectPath: string;
  /** Of this layout, in a folder of the section's own. */
  readonly pinFolder: string;
  /** Of the data path's eBPF maps, by which frames go straight into tunnels; undefined: the data path is another. */
  readonly dataPathPins: string | undefined;
  /** Counts what is written into a map. */
  readonly countWrites: KernelWrites['map'];
}

/** Without the check of where a device fills a checksum in, where the kernel does not show that. */
const objectFor = (objectPath: string): string =>
  hasKernelFunction(KERNEL_CONTEXT) ? objectPath : objectPath.replace(/\.bpf\.o$/, '_plain.bpf.o');

/** @throws TypeError when the programs and this agent were not built together; BpfError */
export const loadL2 = ({ objectPath: path, pinFolder, dataPathPins, countWrites }: L2Files): LoadedL2 => {
  const objectPath = objectFor(path);
  const fingerprint = l2LayoutFingerprint();
  const shared = { pinFolder: dataPathPins, names: Object.keys(MAPS) };
  const loaded = loadPinned({ name: 'unbounded_l2', objectPath, pinFolder, maps: L2_MAPS, fingerprint, shared });
  return { ...loaded, maps: mapsOf(loaded.object, countWrites) };
};
