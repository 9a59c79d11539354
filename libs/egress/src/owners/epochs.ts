import type { EgressNodeSlice } from '@unbounded/crds';

/** Numbers of grants: an owner has a higher one than those before it. */

/** No address has had as many owners: what is above was reported by nobody who tells the truth. */
const HIGHEST_REPORTED = 2 ** 31;
/** Far above what can be counted up to, and far below what the API server takes. */
const HIGHEST_EPOCH = 2 ** 48;

/** An epoch that a controller wrote, or 0 for one that nobody counted up to: going on from there would end at what is refused. */
export const countedEpoch = (epoch: number | undefined): number =>
  epoch !== undefined && epoch <= HIGHEST_EPOCH ? epoch : 0;

/** The highest epoch of each address; 0 for what is no epoch. */
export const highestEpochs = (
  entries: readonly { readonly address: string; readonly epoch: number }[],
): ReadonlyMap<string, number> => {
  const epochs = new Map<string, number>();
  for (const { address, epoch } of entries) {
    epochs.set(address, Math.max(countedEpoch(epoch), epochs.get(address) ?? 0));
  }
  return epochs;
};

/**
 * The epochs that agents report, by address and node; 0: none. The report of an earlier grant can be there still when nothing else is
 * known of it: it must not count for a new one of the same node. Of other nodes it says nothing.
 */
export const createReportedEpoch = (
  slices: readonly EgressNodeSlice[],
): ((address: string, node: string) => number) => {
  const reported = new Map<string, number>();
  for (const { spec, status } of slices) {
    for (const { address, epoch } of [...(status?.held ?? []), ...(status?.released ?? [])]) {
      const key = `${address} ${spec.nodeName}`;
      if (epoch <= HIGHEST_REPORTED) reported.set(key, Math.max(epoch, reported.get(key) ?? 0));
    }
  }
  return (address, node) => reported.get(`${address} ${node}`) ?? 0;
};
