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
