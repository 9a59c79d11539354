import {
  type Forwarding,
  type ForwardingEntry,
  LARGEST_FORWARDING_BYTES,
  MOST_FORWARDING_ENTRIES,
} from '@unbounded/status';

/** The entries as they go to the aggregator: those that differ first, and no more than it takes. */

/** For what stands around the entries. */
const ROOM_BYTES = 4096;

const isInSync = ({ state }: ForwardingEntry): boolean => state === 'InSync';

const compare = (a: ForwardingEntry, b: ForwardingEntry): number => {
  if (isInSync(a) !== isInSync(b)) return isInSync(a) ? 1 : -1;
  if (a.table !== b.table) return a.table < b.table ? -1 : 1;
  return a.key < b.key ? -1 : Number(a.key > b.key);
};

/** @param mostBytes of JSON in UTF-8 */
export const forwardingList = (
  all: readonly ForwardingEntry[],
  about: Pick<Forwarding, 'readTime' | 'dataplane'>,
  mostBytes = LARGEST_FORWARDING_BYTES,
): Forwarding => {
  const entries: ForwardingEntry[] = [];
  let bytes = ROOM_BYTES;
  for (const entry of all.toSorted(compare).slice(0, MOST_FORWARDING_ENTRIES)) {
    bytes += Buffer.byteLength(JSON.stringify(entry)) + 1;
    if (bytes > mostBytes) break;
    entries.push(entry);
  }
  const different = all.filter((entry) => !isInSync(entry)).length;
  return { ...about, total: all.length, different, entries };
};
