import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';

/** The folder of the node's keys: every file is written whole or not at all, and is on the disk when that is done. */
export interface KeyDisk {
  readonly folder: string;
  /** Undefined: there is no such file. */
  read(name: string): string | undefined;
  write(name: string, text: string, mode: number): void;
  remove(name: string): void;
  /** Only for the owner. */
  restrict(name: string): void;
  /** Milliseconds since the epoch; the file is there. */
  changedMs(name: string): number;
}

const sync = (path: string): void => {
  const fd = openSync(path, 'r');
  fsyncSync(fd);
  closeSync(fd);
};

export const openKeyDisk = (folder: string): KeyDisk => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return {
    folder,
    read(name) {
      const file = join(folder, name);
      return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
    },
    write(name, text, mode) {
      const file = join(folder, name);
      const fd = openSync(`${file}.new`, 'w', mode);
      writeSync(fd, text);
      fsyncSync(fd);
      closeSync(fd);
      chmodSync(`${file}.new`, mode);
      renameSync(`${file}.new`, file);
      sync(folder);
    },
    remove(name) {
      if (!existsSync(join(folder, name))) return;
      rmSync(join(folder, name));
      sync(folder);
    },
    restrict: (name) => chmodSync(join(folder, name), 0o600),
    changedMs: (name) => statSync(join(folder, name)).mtimeMs,
  };
};
