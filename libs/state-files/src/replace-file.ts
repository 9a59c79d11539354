import {
  chmodSync,
  closeSync,
  existsSync,
  constants,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { chmod, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Replaces files atomically and durably: temporary file in the same directory, fsync(2), rename(2), fsync(2) of the
 * directory (without that a power cut may leave an empty file or the old directory entry).
 */

export interface ReplaceOptions {
  /** Permission bits of the file, whatever the umask. */
  readonly mode: number;
  /** Permission bits of directories that are made for it. */
  readonly directoryMode?: number;
  /**
   * False: whole, but not synchronized: for what is on a tmpfs, and for a process under Node's --permission, which forbids fsync.
   */
  readonly durable?: boolean;
}

const DIRECTORY_MODE = 0o700;
/** A symbolic link under the temporary name is not followed. */
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
const temporary = (path: string): string => `${path}.new`;

/** Some file systems (FUSE, 9p) cannot synchronize a directory: there is nothing more to be done on them. */
const CANNOT_SYNC = new Set(['EINVAL', 'ENOTSUP', 'EOPNOTSUPP']);
const ignoreUnsupported = (error: unknown): void => {
  if (!CANNOT_SYNC.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
};

const syncDirectory = (path: string): void => {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } catch (error) {
    ignoreUnsupported(error);
  } finally {
    closeSync(fd);
  }
};

const writeWhole = (path: string, content: string | Uint8Array, { mode, durable = true }: ReplaceOptions): void => {
  const fd = openSync(path, CREATE, mode);
  try {
    chmodSync(path, mode); // not by the descriptor, which Node's --permission forbids
    writeFileSync(fd, content);
    if (durable) fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
};

/**
 * The file holds exactly this when it returns, and still does after a power cut.
 * @throws Error with the code of the system call (ENOSPC, EROFS, EIO, …); the file is as it was before
 */
export const replaceFile = (path: string, content: string | Uint8Array, options: ReplaceOptions): void => {
  const directory = dirname(path);
  if (!existsSync(directory)) mkdirSync(directory, { recursive: true, mode: options.directoryMode ?? DIRECTORY_MODE });
  try {
    writeWhole(temporary(path), content, options);
    renameSync(temporary(path), path);
  } catch (error) {
    discard(path);
    throw error;
  }
  if (options.durable !== false) syncDirectory(directory);
};

/**
 * The name is a symbolic link to the target when it returns, and still is after a power cut; the target need not exist.
 * @throws Error with the code of the system call; the name is as it was before
 */
export const replaceLink = (path: string, target: string, directoryMode = DIRECTORY_MODE): void => {
  const directory = dirname(path);
  if (!existsSync(directory)) mkdirSync(directory, { recursive: true, mode: directoryMode });
  discard(path); // of a process that ended in the middle
  try {
    symlinkSync(target, temporary(path));
    renameSync(temporary(path), path);
  } catch (error) {
    discard(path);
    throw error;
  }
  syncDirectory(directory);
};

/** Half of a file must not hold the space that the next attempt needs. */
const discard = (path: string): void => {
  try {
    rmSync(temporary(path), { force: true });
  } catch {
    // On a read-only file system there is none.
  }
};

/** As {@link replaceFile}, for a thread that must not wait for a disk. One call for a path at a time. */
export const replaceFileAsync = async (
  path: string,
  content: string | Uint8Array,
  { mode, directoryMode = DIRECTORY_MODE, durable = true }: ReplaceOptions,
): Promise<void> => {
  await mkdir(dirname(path), { recursive: true, mode: directoryMode });
  try {
    await using file = await open(temporary(path), CREATE, mode);
    await chmod(temporary(path), mode);
    await file.writeFile(content);
    if (durable) await file.sync();
    await rename(temporary(path), path);
  } catch (error) {
    await rm(temporary(path), { force: true }).catch(() => undefined);
    throw error;
  }
  if (!durable) return;
  await using directory = await open(dirname(path), 'r');
  await directory.sync().catch(ignoreUnsupported);
};

/**
 * Deletes the file; it is also gone after a power cut. An absent file is no error.
 * @throws Error with the code of the system call
 */
export const removeFile = (path: string): void => {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  syncDirectory(dirname(path));
};
