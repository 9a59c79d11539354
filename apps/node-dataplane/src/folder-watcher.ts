import { type FSWatcher, statSync, watch } from 'node:fs';

/** What tells of changes in a folder, as long as the kernel has it to give. */
export interface FolderWatcher {
  /** The folder that is there: one that was removed and made again is another. */
  readonly isWatching: boolean;
  /** Tries again where it has failed. */
  readonly ensure: () => void;
  readonly close: () => void;
}

/** Numbers of inodes are given again. */
const identityOf = (folder: string): string => {
  const found = statSync(folder, { throwIfNoEntry: false });
  return found ? `${found.ino} ${found.birthtimeMs}` : '';
};

/**
 * Watches from the first `ensure`. It fails where all is taken that the programs of a user share (fs.inotify.max_user_instances): what is
 * in the folder must be read without it too.
 * @param onFailed called once for a reason
 */
export const openWatcher = (
  folder: string,
  onName: (name: string | null) => void,
  onFailed: (error: Error) => void,
): FolderWatcher => {
  let watcher: FSWatcher | undefined;
  let watched = '';
  let reason = '';
  const isWatching = (): boolean => watcher !== undefined && identityOf(folder) === watched;
  const close = (): void => {
    watcher?.close();
    watcher = undefined;
  };
  const fail = (error: Error): void => {
    close();
    if (error.message !== reason) onFailed(error);
    reason = error.message;
  };
  const ensure = (): void => {
    if (isWatching()) return;
    close();
    try {
      watcher = watch(folder, (_, name) => onName(name)).on('error', fail);
      watched = identityOf(folder);
    } catch (error) {
      fail(error as Error);
    }
  };
  return {
    get isWatching() {
      return isWatching();
    },
    ensure,
    close,
  };
};
