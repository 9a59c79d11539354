import type { Codec } from './codec.ts';
import { readRemote, REMOTE, remoteBytes, setBytes } from './endpoints.ts';

/** Tunnel peers that may bring packets of others: struct forwarder_key of bpf/include/endpoints.h, 20 bytes. */

const LITTLE = true;

/** An underlay address as text. */
export const forwarderKey: Codec<string> = {
  size: REMOTE + 4,
  write(address, view, offset) {
    setBytes(view, offset, remoteBytes(address));
    view.setUint32(offset + REMOTE, address.includes(':') ? 1 : 0, LITTLE);
  },
  read: (view, offset) => readRemote(view, offset, view.getUint32(offset + REMOTE, LITTLE) !== 0).remote ?? '0.0.0.0',
};

/** The value says nothing: the key's presence does. */
export const present: Codec<1> = {
  size: 4,
  write: (_value, view, offset) => view.setUint32(offset, 1, LITTLE),
  read: () => 1,
};
