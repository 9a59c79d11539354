import { addon } from './native.ts';

/**
 * Makes a persistent TUN with IFF_NO_PI and IFF_VNET_HDR, or adopts one of the same flags that nobody holds. It outlives
 * the processes that attach to it; `links.delete` ends it. The thread that runs this never changes its namespace.
 * @throws Error with `code` EBUSY (a process is attached), EINVAL (a device of another kind has the name), ENOENT (no
 * /dev/net/tun), …
 */
export const createTun = (options: { readonly name: string; readonly netnsFd?: number }): void =>
  addon().createTun(options.name, options.netnsFd ?? -1);

/** Attached to a TUN: packets go in by it, and those that the kernel sends out by it are read. */
export interface Tun extends Disposable {
  /**
   * A whole IP packet of at most 512 bytes, which comes in by the device. Returns the errno, 0 when it was taken: EIO while the device is
   * down, EBADFD when it is gone.
   */
  inject(packet: Uint8Array): number;
  /** The device stays. */
  close(): void;
}

export interface TunOptions {
  readonly name: string;
  readonly netnsFd?: number;
  /** Of at most 512 bytes: longer ones are passed over. */
  readonly onPacket: (packet: Uint8Array) => void;
}

const LENGTH_BYTES = 2;

/** Packets or frames as the addon hands them over: each with its length, and zeros up to a multiple of 4. */
export const forEachPacket = (bytes: Uint8Array, onPacket: (packet: Uint8Array) => void): void => {
  for (let at = 0; at < bytes.length;) {
    const end = at + LENGTH_BYTES + bytes[at]! * 256 + bytes[at + 1]!;
    onPacket(bytes.subarray(at + LENGTH_BYTES, end));
    at = (end + 3) & ~3;
  }
};

/**
 * Of a device that {@link createTun} made: none is made here. What the kernel sends out in the first moment is lost, until the link's
 * `operState` is `up`.
 * @throws Error with `code` EBUSY (a process is attached), ENODEV (there is none), EINVAL (it is of another kind), ENOENT (no /dev/net/tun)
 */
export const openTun = ({ name, netnsFd = -1, onPacket }: TunOptions): Tun => {
  const native = addon();
  const handle = native.openTun(name, netnsFd, (bytes) => forEachPacket(bytes, onPacket));
  const close = (): void => native.closeTun(handle);
  return { inject: (packet) => native.injectPacket(handle, packet), close, [Symbol.dispose]: close };
};
