import type { Message } from '@unbounded/netlink';

import { HEADER_BYTES, FAMILY, SUBSYSTEM, TABLE } from './wire.codec.ts';
import type { TableFamily } from './table.ts';

/** Multicast messages of nf_tables (NFNLGRP_NFTABLES), as far as it matters which table they are about. */

const ATTRIBUTE_HEADER_BYTES = 4;
const ATTRIBUTE_TYPE = 0x3fff; // without the flag bits
const LITTLE = true; // attributes are in host order

const text = new TextDecoder();

/**
 * Whether a message is about a table, or about anything in it. All of them begin with the family and carry the name of
 * the table as attribute 1, the first one. Everybody's changes are heard, kube-proxy's too: no more than that is read.
 */
export const changesTable = (
  { type, body }: Pick<Message, 'type' | 'body'>,
  family: TableFamily,
  name: string,
): boolean => {
  if (type >> 8 !== SUBSYSTEM || body[0] !== FAMILY[family]) return false;
  if (body.length < HEADER_BYTES + ATTRIBUTE_HEADER_BYTES) return false;
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  const length = view.getUint16(HEADER_BYTES, LITTLE);
  const attribute = view.getUint16(HEADER_BYTES + 2, LITTLE) & ATTRIBUTE_TYPE;
  if (attribute !== TABLE.name) return false;
  const bytes = body.subarray(HEADER_BYTES + ATTRIBUTE_HEADER_BYTES, HEADER_BYTES + length);
  return text.decode(bytes).replace(/\0.*$/s, '') === name;
};
