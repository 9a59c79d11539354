/** What of ours lies in Redis, and what is taken from there, at most. Others may write to it. */

const KIB = 1024;
const MIB = 1024 * KIB;

/** A report of LARGEST_REPORT characters, in UTF-8. */
export const MOST_REPORT_BYTES = 12 * MIB;
export const MOST_PACKED_REPORT_BYTES = 4 * MIB;
/** A larger push is in the hash alone: the stream tells that it changed. 10,000 of these are 160 MiB. */
export const MOST_ENTRY_BYTES = 16 * KIB;
export const MOST_REPORT_ENTRIES = 10_000;
/** Of a cluster: four times what is supported. */
export const MOST_NODES = 20_000;

export const MOST_VIEW_BYTES = 64 * MIB;
export const MOST_PACKED_VIEW_BYTES = 16 * MIB;
/** A larger difference begins a new history: clients get the view, which is hardly more. */
export const MOST_PACKED_PATCH_BYTES = 256 * KIB;
/** As a replica of its own keeps. */
export const MOST_VIEW_ENTRIES = 200;

/** One answer of Redis, which does nothing else while it makes it. */
export const PAGE_BYTES = 2 * MIB;
export const PAGE_ENTRIES = 200;
