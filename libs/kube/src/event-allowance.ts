/**
 * How many Events one program sends, whatever happens to what it tells of: some at once, then one after the other at a steady rate.
 * And how many there are of it at a time: its Events have one of so many names. That a policy can hold it to, where no policy sees a
 * rate: so a stolen token does not fill the store of the API server, however fast it writes.
 */
export interface EventAllowance {
  readonly most: number;
  /** One more after each of these times, milliseconds. */
  readonly everyMs: number;
}

/** Of a program with an allowance: three digits, so that a day's Events have names where they are kept so long (`--event-ttl`). */
const NAMES = 16 ** 3;
const LONGEST_SUBJECT = 200;

/** Names are drawn by lot: whether one is taken the API server says. @param wallMs what time it is, milliseconds */
export const eventName = (about: string, wallMs: number, allowance: EventAllowance | undefined): string => {
  const subject = about.slice(0, LONGEST_SUBJECT);
  if (!allowance) return `${subject}.${wallMs.toString(16)}${Math.floor(Math.random() * 0xff_ffff).toString(16)}`;
  return `${subject}.${Math.floor(Math.random() * NAMES)
    .toString(16)
    .padStart(3, '0')}`;
};

/** Takes one from the allowance, if there is one. @param elapsed a clock that only goes forward, milliseconds */
export const createEventBudget = ({ most, everyMs }: EventAllowance, elapsed: () => number): (() => boolean) => {
  let left = most;
  let countedMs = elapsed();
  return () => {
    const gained = Math.floor((elapsed() - countedMs) / everyMs);
    left = Math.min(most, left + gained);
    countedMs = left === most ? elapsed() : countedMs + gained * everyMs;
    if (left === 0) return false;
    left--;
    return true;
  };
};
