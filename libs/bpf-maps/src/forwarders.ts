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

/** What a peer may bring besides its own packets; bits of the value. */
const BRINGS = { others: 1, echoes: 2 } as const;

export interface Brought {
  /** Packets of others. */
  readonly others?: boolean;
  /** Echoes of this node. */
  readonly echoes?: boolean;
}

export const brought: Codec<Brought> = {
  size: 4,
  write: ({ others, echoes }, view, offset) =>
    view.setUint32(offset, (others ? BRINGS.others : 0) | (echoes ? BRINGS.echoes : 0), LITTLE),
  read(view, offset) {
    const bits = view.getUint32(offset, LITTLE);
    return {
      ...(bits & BRINGS.others ? { others: true } : {}),
      ...(bits & BRINGS.echoes ? { echoes: true } : {}),
    };
  },
};
