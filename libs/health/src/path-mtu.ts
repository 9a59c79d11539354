/**
 * The search for the largest packet that a path carries, in the manner of RFC 8899 (datagram packetization layer path
 * MTU discovery): padded probes, no word from routers needed. Sizes are those of whole IP packets, bytes.
 */

/** Most paths that lose larger packets carry this: RFC 8899 section 5.1.2, BASE_PLPMTU. It is tried before smaller ones. */
export const BASE_MTU_BYTES = 1200;
/**
 * What every path is taken to carry (MIN_PLPMTU): the smallest MTU that an object may give a tunnel, which no IPv6 fits into, and
 * the smallest that IPv6 allows (RFC 8200 section 5).
 */
export const SMALLEST_MTU_BYTES = { 4: 576, 6: 1280 } as const;
/** Probes of one size that must be lost in a row before the size counts as too large (MAX_PROBES). */
const MTU_PROBE_LOSSES = 3;

export interface MtuSearch {
  /** What the link's own device allows. */
  readonly ceilingBytes: number;
  /** What is not doubted, and so not probed below. */
  readonly floorBytes: number;
  /** The size to probe next: while settled it is the found one, which is confirmed again and again. */
  readonly candidateBytes: number;
  readonly isSettled: boolean;
  /** What the search found when it was last settled; undefined before that. */
  readonly foundBytes: number | undefined;
  /** The largest size known to pass, and the smallest known to be lost (one above the ceiling when none is). */
  readonly passesBytes: number;
  readonly lostBytes: number;
  /** Probes of the candidate's size lost in a row. */
  readonly losses: number;
}

const settle = (search: MtuSearch): MtuSearch => ({
  ...search,
  isSettled: true,
  foundBytes: search.passesBytes,
  candidateBytes: search.passesBytes,
  losses: 0,
});

/** Halves, but with the base first: a search between it and the ceiling is short. */
const between = ({ passesBytes, lostBytes }: MtuSearch): number =>
  passesBytes < BASE_MTU_BYTES && BASE_MTU_BYTES < lostBytes
    ? BASE_MTU_BYTES
    : Math.floor((passesBytes + lostBytes) / 2);

const narrow = (search: MtuSearch): MtuSearch =>
  search.lostBytes - search.passesBytes <= 1
    ? settle(search)
    : {
        ...search,
        isSettled: false,
        candidateBytes: between(search),
        losses: 0,
      };

/** A search from the top: most paths carry what their devices allow. Of a device that allows no more than the floor nothing is to be found. */
export const startMtuSearch = (ceilingBytes: number, smallestBytes: number): MtuSearch => {
  const isSettled = ceilingBytes <= smallestBytes;
  const floorBytes = Math.min(ceilingBytes, smallestBytes);
  return {
    ceilingBytes,
    floorBytes,
    candidateBytes: ceilingBytes,
    isSettled,
    foundBytes: isSettled ? ceilingBytes : undefined,
    passesBytes: floorBytes,
    lostBytes: ceilingBytes + 1,
    losses: 0,
  };
};

/** A padded probe was answered. Late answers to sizes that are no candidate any more are ignored. */
export const mtuAnswered = (search: MtuSearch, sizeBytes: number): MtuSearch => {
  if (sizeBytes !== search.candidateBytes) return search;
  return search.isSettled ? { ...search, losses: 0 } : narrow({ ...search, passesBytes: sizeBytes });
};

/** A padded probe was lost while small ones pass. Too many of a settled size mean a black hole: the search goes below it. */
export const mtuLost = (search: MtuSearch, sizeBytes: number): MtuSearch => {
  if (sizeBytes !== search.candidateBytes || sizeBytes <= search.floorBytes) return search;
  const losses = search.losses + 1;
  if (losses < MTU_PROBE_LOSSES) return { ...search, losses };
  return narrow({
    ...search,
    lostBytes: sizeBytes,
    passesBytes: search.isSettled ? search.floorBytes : search.passesBytes,
  });
};

/** Looks whether the path carries more by now (RFC 8899's PMTU_RAISE_TIMER). */
export const raiseMtu = (search: MtuSearch): MtuSearch =>
  search.isSettled && search.passesBytes < search.ceilingBytes
    ? {
        ...search,
        isSettled: false,
        candidateBytes: search.ceilingBytes,
        lostBytes: search.ceilingBytes + 1,
        losses: 0,
      }
    : search;

/** The found size where it is less than the link's own device allows; undefined: nothing limits it, or it is not known yet. */
export const mtuLimit = ({ foundBytes, ceilingBytes }: MtuSearch): number | undefined =>
  foundBytes !== undefined && foundBytes < ceilingBytes ? foundBytes : undefined;
