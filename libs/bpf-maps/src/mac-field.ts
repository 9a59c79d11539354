import { macBytes, macText } from '@unbounded/ip';
import { setBytes } from './endpoints.ts';

/** A MAC address as records have it: six bytes. */

const BYTES = 6;

export const NO_MAC = '00:00:00:00:00:00';

/** @throws RangeError where the text is no MAC address */
export const writeMac = (mac: string, view: DataView, at: number): void => setBytes(view, at, macBytes(mac));

export const readMac = (view: DataView, at: number): string =>
  macText(new Uint8Array(view.buffer, view.byteOffset + at, BYTES));
