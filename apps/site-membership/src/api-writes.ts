/** How this program writes: under which name, and how much at a time of each kind. */
export const FIELD_MANAGER = 'unbounded-site-membership';
export const PARALLEL_WRITES = 8;
