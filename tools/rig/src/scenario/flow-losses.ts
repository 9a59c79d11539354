import type { FlowReport } from './scenario.ts';

/** What a flow lost, and after which of several moments. */

/** A datagram that is lost at a moment was sent at most so long before it. */
const IN_FLIGHT_MS = 50;

/**
 * Milliseconds of a flow that were lost after each moment and before the next: one for each, of all its losses together.
 * @param moments unix time in milliseconds, in order
 * @param perSecond datagrams of the flow
 */
export const lostMsAfter = (
  { losses, startedUnixMillis }: Pick<FlowReport, 'losses' | 'startedUnixMillis'>,
  moments: readonly number[],
  perSecond: number,
): number[] =>
  moments.map((moment, index) => {
    const next = moments[index + 1] ?? Infinity;
    return losses
      .filter(({ atMillis }) => {
        const at = startedUnixMillis + atMillis + IN_FLIGHT_MS;
        return at >= moment && at < next;
      })
      .reduce((sum, { firstNumber, lastNumber }) => sum + ((lastNumber - firstNumber + 1) * 1000) / perSecond, 0);
  });
