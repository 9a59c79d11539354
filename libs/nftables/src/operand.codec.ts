import { addressToBytes, parseAddress } from '@unbounded/ip';

import { FIELDS, networkOrder } from './instruction.codec.ts';
import { nameKey } from './set.codec.ts';
import type { PayloadField } from './table.ts';

/** An interface name as a rule compares it: whole, or with `*` at its end the beginning only. @throws RangeError */
export const interfaceName = (name: string): Uint8Array => {
  if (!name.endsWith('*')) return nameKey(name);
  const bytes = new TextEncoder().encode(name.slice(0, -1));
  if (bytes.length === 0 || bytes.length > 15)
    throw new RangeError(`interface pattern "${name}" must have 1..15 bytes before its *`);
  return bytes;
};

/** The first `bits` of `length` bytes are one. */
export const prefixMask = (length: number, bits: number): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (0xff00 >> Math.min(8, Math.max(0, bits - index * 8))) & 0xff);

/** A header field's value as it is in the packet. @throws RangeError, AddressSyntaxError naming the field */
export const fieldBytes = (field: PayloadField, wanted: string | number, length: number): Uint8Array => {
  if (!FIELDS[field].family || !field.endsWith('addr')) return networkOrder(field, Number(wanted), length);
  const bytes = addressToBytes(parseAddress(String(wanted)));
  if (bytes.length !== length) throw new RangeError(`${field} ${wanted} is of the wrong family`);
  return bytes;
};
