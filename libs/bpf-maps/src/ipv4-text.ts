/**
 * IPv4 text as a number, without the detours of the general parser: maps are filled by the ten thousand. Reads from
 * `start` to `end`; -1 for anything unusual, which the general parser then judges (and names in its error).
 */
export const ipv4Value = (text: string, start: number, end: number): number => {
  let [value, octet, digits, dots] = [0, 0, 0, 0];
  for (let at = start; at <= end; at++) {
    const code = at === end ? DOT : text.charCodeAt(at);
    if (code === DOT) {
      if (digits === 0 || octet > 255) return -1;
      value = value * 256 + octet;
      [octet, digits] = [0, 0];
      dots++;
    } else {
      if (code < ZERO || code > NINE || (digits > 0 && octet === 0)) return -1; // a leading zero may mean octal
      octet = octet * 10 + code - ZERO;
      if (++digits > 3) return -1;
    }
  }
  return dots === 4 ? value : -1;
};

const [DOT, ZERO, NINE] = [46, 48, 57];

/** The rest of the text as a prefix length of IPv4; -1 for anything unusual. */
export const ipv4PrefixLength = (text: string, start: number): number => {
  const digits = text.length - start;
  const [first, second] = [text.charCodeAt(start) - ZERO, text.charCodeAt(start + 1) - ZERO];
  if (digits === 1 && first >= 0 && first <= 9) return first;
  const length = first * 10 + second;
  return digits === 2 && first >= 1 && first <= 3 && second >= 0 && second <= 9 && length <= 32 ? length : -1;
};

/** The text of a 32-bit number. */
export const ipv4Text = (value: number): string =>
  `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`;
