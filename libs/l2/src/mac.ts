/** MAC addresses as text: six octets in lower case with colons. */

const OCTETS = 6;
const SYNTAX = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

export const macText = (octets: Uint8Array): string =>
  [...octets].map((octet) => octet.toString(16).padStart(2, '0')).join(':');

/** @throws RangeError where the text is no MAC address */
export const macOctets = (text: string): Uint8Array => {
  if (!SYNTAX.test(text))
    throw new RangeError(`"${text}" is no MAC address: must be six octets in lower case like 02:00:5e:10:00:01`);
  return Uint8Array.from(text.split(':'), (octet) => Number.parseInt(octet, 16));
};

/** Of one station: no group (IEEE 802), and not all zero. */
export const isStationMac = (text: string): boolean =>
  SYNTAX.test(text) && text !== '00:00:00:00:00:00' && (Number.parseInt(text.slice(0, 2), 16) & 1) === 0;

/**
 * A locally administered address of one station (IEEE 802: second bit of the first octet set, first one clear).
 * @param octets six at random, or of a hash where the same endpoint is to get the same address again
 * @throws RangeError where they are not six
 */
export const localMac = (octets: Uint8Array): string => {
  if (octets.length !== OCTETS) throw new RangeError(`${octets.length} octets: a MAC address has ${OCTETS}`);
  return macText(Uint8Array.from(octets, (octet, at) => (at === 0 ? (octet & 0xfc) | 0x02 : octet)));
};
