/** Values as people read them. What is not known is called unknown, and never nothing or zero. */

export const UNKNOWN = 'unknown';

const number = new Intl.NumberFormat('en-US');
export const count = (value: number): string => number.format(value);

/** Of a list that is cut. */
export const ofAll = (shown: number, total: number): string =>
  shown === total ? count(total) : `${count(shown)} of ${count(total)}`;

export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

const UNITS = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
] as const;

/** At most two units, one beside the other: `2 h 5 min`, and `2 h` alone when what follows is seconds. */
export const duration = (ms: number): string => {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const at = UNITS.findIndex(([size]) => seconds >= size);
  const [size, unit] = UNITS[at] ?? UNITS.at(-1)!;
  const value = Math.floor(seconds / size);
  const [nextSize, nextUnit] = UNITS[at + 1] ?? [1, 's'];
  const rest = size === 1 ? 0 : Math.floor((seconds % size) / nextSize);
  // Of ten minutes or more nobody asks for the seconds.
  const isExact = rest > 0 && !(unit === 'min' && value >= 10);
  return isExact ? `${value} ${unit} ${rest} ${nextUnit}` : `${value} ${unit}`;
};

/** Three digits at most. */
const digits = (value: number): string => {
  if (value === 0) return '0';
  const exact = value >= 100 ? value.toFixed(0) : value.toPrecision(value >= 10 ? 3 : 2);
  return String(Number(exact));
};

export const roundTrip = (ms: number | undefined): string => {
  if (ms === undefined) return UNKNOWN;
  return ms >= 1000 ? `${digits(ms / 1000)} s` : `${digits(ms)} ms`;
};

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'] as const;

export const bytes = (value: number | undefined): string => {
  if (value === undefined) return UNKNOWN;
  let unit = 0;
  let rest = value;
  // Rounded to 1024 would be the next unit.
  while (rest >= 1023.5 && unit < BYTE_UNITS.length - 1) {
    rest /= 1024;
    unit++;
  }
  return `${digits(rest)} ${BYTE_UNITS[unit]}`;
};

/** A share of 0 to 1. Something is never shown as nothing, nor almost all as all. */
export const percent = (ratio: number | undefined): string => {
  if (ratio === undefined) return UNKNOWN;
  if (ratio > 0 && ratio < 0.001) return '< 0.1 %';
  if (ratio < 1 && ratio > 0.999) return '> 99.9 %';
  return `${Number((ratio * 100).toFixed(1))} %`;
};

/** `3 min ago`; a time of a clock that is ahead of ours is now. */
export const ago = (ms: number): string => (ms < 1000 ? 'now' : `${duration(ms)} ago`);

/** What is between `rfc3339` and now; undefined: it is no time. */
export const ageMs = (rfc3339: string, now: number): number | undefined => {
  const time = Date.parse(rfc3339);
  return Number.isNaN(time) ? undefined : now - time;
};
