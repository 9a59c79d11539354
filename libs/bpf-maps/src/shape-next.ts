import { LAYOUT_VERSION as current } from './shape.ts';

/**
 * A stand-in for the next layout, to try migrations with: records of other sizes, whose fields are in other places. It takes the
 * place of shape.ts under the condition `next-layout` (package.json); NEXT_LAYOUT is the same for the programs.
 */
export const LAYOUT_VERSION = current + 1;

export const LEADING_BYTES = { endpointV4: 4, nexthopGroup: 8 };
