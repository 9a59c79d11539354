import { closeSync } from 'node:fs';

import { addon } from './native.ts';

/** A network namespace, held open by an fd. */
export interface Netns extends Disposable {
  readonly fd: number;
  /** For other programs: `nsenter --net=<path>`. Valid while this process holds it open. */
  readonly path: string;
  close(): void;
}

const held = (fd: number): Netns => {
  let open = true;
  const close = (): void => {
    if (open) closeSync(fd);
    open = false;
  };
  return { fd, path: `/proc/${process.pid}/fd/${fd}`, close, [Symbol.dispose]: close };
};

/**
 * A new namespace; its loopback is down. Without a path it ends when nobody holds it any more; with one it is bound to
 * that file, which must not exist (unmount and remove it to end it). @throws Error with `code` EPERM, EEXIST, …
 */
export const createNetns = (path = ''): Netns => held(addon().createNetns(path));

/**
 * Makes a persistent TUN with IFF_NO_PI and IFF_VNET_HDR, or adopts one of the same flags that nobody holds. It outlives
 * the processes that attach to it; `links.delete` ends it. The thread that runs this never changes its namespace.
 * @throws Error with `code` EBUSY (a process is attached), EINVAL (a device of another kind has the name), ENOENT (no
 * /dev/net/tun), …
 */
export const createTun = (options: { readonly name: string; readonly netnsFd?: number }): void =>
  addon().createTun(options.name, options.netnsFd ?? -1);
