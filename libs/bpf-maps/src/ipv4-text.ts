/**
 * IPv4 text as a number, without the detours of the general parser: maps are filled by the ten thousand. Reads from
 * `start` to `end`; -1 for anything unusual, which the general parser then judges (and names in its error).
 */
export const ipv4Value = (text: string, start: number, end: number): number => {
  // Plain assignments: taking arrays apart costs more here than all the rest.
  let value = 0;
  let octet = -1; // no digit yet
  let dots = 0;
  for (let at = start; at < end; at++) {
    const digit = text.charCodeAt(at) - ZERO;
    if (digit >= 0 && digit <= 9) {
      if (octet === 0) return -1; // a leading zero may mean octal
      octet = octet < 0 ? digit : octet * 10 + digit;
      if (octet > 255) return -1;
    } else {
      if (digit !== DOT || octet < 0) return -1;
      value = (value << 8) | octet;
      octet = -1;
      dots++;
    }
  }
  return dots === 3 && octet >= 0 ? ((value << 8) | octet) >>> 0 : -1;
};

const ZERO = 48;
const DOT = 46 - ZERO;

/** The rest of the text as a prefix length of IPv4; -1 for anything unusual. */
export const ipv4PrefixLength = (text: string, start: number): number => {
  const digits = text.length - start;
  const first = text.charCodeAt(start) - ZERO;
  const second = text.charCodeAt(start + 1) - ZERO;
  if (digits === 1 && first >= 0 && first <= 9) return first;
  const length = first * 10 + second;
  return digits === 2 && first >= 1 && first <= 3 && second >= 0 && second <= 9 && length <= 32 ? length : -1;
};

/** The text of a 32-bit number. */
export const ipv4Text = (value: number): string =>
  `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`;
