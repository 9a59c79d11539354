import { macText } from '@unbounded/ip';

/** MAC addresses of endpoints: in lower case, so that one address is one text. */

const OCTETS = 6;
const SYNTAX = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

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
