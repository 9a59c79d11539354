import { chmodSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { removeFile, replaceFile } from '@unbounded/state-files';

/** The folder of the node's keys: every file is written whole or not at all, and is on the disk when that is done. */
export interface KeyDisk {
  readonly folder: string;
  /** Undefined: there is no such file. */
  read(name: string): string | undefined;
  /** @throws Error with the code of the system call when it cannot be kept */
  write(name: string, text: string, mode: number): void;
  /** @throws Error with the code of the system call */
  remove(name: string): void;
  /** Only for the owner. @throws Error with the code of the system call */
  restrict(name: string): void;
  /** Milliseconds since the epoch; the file is there. */
  changedMs(name: string): number;
}

const OWNER_ONLY = 0o600;

/** Whether it is a failure of the disk (ENOSPC, EROFS, EIO, …) and not of our own logic. */
export const isDiskError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && typeof (error as NodeJS.ErrnoException).errno === 'number';

export const openKeyDisk = (folder: string): KeyDisk => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return {
    folder,
    read(name) {
      const file = join(folder, name);
      return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
    },
    write: (name, text, mode) => replaceFile(join(folder, name), text, { mode }),
    remove: (name) => removeFile(join(folder, name)),
    restrict(name) {
      const file = join(folder, name);
      if ((statSync(file).mode & 0o777) !== OWNER_ONLY) chmodSync(file, OWNER_ONLY);
    },
    changedMs: (name) => statSync(join(folder, name)).mtimeMs,
  };
};
