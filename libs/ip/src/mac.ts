/** MAC addresses as text: six octets (IEEE 802) with colons. */

const SYNTAX = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i;

/** In either case. @throws RangeError where the text is no MAC address */
export const macBytes = (text: string): Uint8Array => {
  if (!SYNTAX.test(text)) throw new RangeError(`"${text}" is not a MAC address: write it like 02:00:00:00:00:01`);
  return Uint8Array.from(text.split(':'), (octet) => Number.parseInt(octet, 16));
};

/** In lower case. */
export const macText = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(':');
