/**
 * The layout of the maps by number. What changes the size, the place or the meaning of anything in them gets the next one: agents
 * of two versions then do not take each other's maps for their own, and migrate instead (docs/adr/0012).
 */
export const LAYOUT_VERSION = 1;

/** Bytes before the first field of a record: LEADING_WORDS of bpf/include/endpoints.h. */
export const LEADING_BYTES = { endpointV4: 0, nexthopGroup: 0 };
