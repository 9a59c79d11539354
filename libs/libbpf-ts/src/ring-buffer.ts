import type { RingBuffer } from './api.port.ts';
import { attempt } from './bpf-error.ts';
import { addon, type Handle } from './native.ts';

/** Takes the addon's packing apart (native/ring.h): u32 length, u32 zero, record, padding to 8 bytes. */
const unpackRecords = (bytes: Uint8Array): Uint8Array[] => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const records: Uint8Array[] = [];
  for (let at = 0; at + 8 <= bytes.length;) {
    const length = view.getUint32(at, true);
    records.push(bytes.subarray(at + 8, at + 8 + length));
    at += 8 + ((length + 7) & ~7);
  }
  return records;
};

/** Records of a BPF_MAP_TYPE_RINGBUF on the event loop, all of a wake-up at once. */
export const openRingBuffer = (map: Handle, onRecords: (records: readonly Uint8Array[]) => void): RingBuffer => {
  const ring = attempt('ring buffer', () => addon().openRing(map, (bytes) => onRecords(unpackRecords(bytes))));
  return {
    consume: () => addon().consumeRing(ring),
    unref: () => addon().holdRing(ring, false),
    close: () => addon().closeRing(ring),
    [Symbol.dispose]: () => addon().closeRing(ring),
  };
};
