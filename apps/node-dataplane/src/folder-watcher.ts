import { type FSWatcher, watch } from 'node:fs';

/** What tells of changes in a folder, as long as the kernel has it to give. */
export interface FolderWatcher {
  readonly isWatching: boolean;
  /** Tries again where it has failed. */
  readonly ensure: () => void;
  readonly close: () => void;
}

/**
 * Watches from the first `ensure`. It fails where all is taken that the programs of a user share (fs.inotify.max_user_instances): what is in the folder must be read without it too.
 * @param onFailed called once for a reason
 */
export const openWatcher = (
  folder: string,
  onName: (name: string | null) => void,
  onFailed: (error: Error) => void,
): FolderWatcher => {
  let watcher: FSWatcher | undefined;
  let reason = '';
  const fail = (error: Error): void => {
    watcher?.close();
    watcher = undefined;
    if (error.message !== reason) onFailed(error);
    reason = error.message;
  };
  const ensure = (): void => {
    if (watcher) return;
    try {
      watcher = watch(folder, (_, name) => onName(name)).on('error', fail);
    } catch (error) {
      fail(error as Error);
    }
  };
  return {
    get isWatching() {
      return watcher !== undefined;
    },
    ensure,
    close: () => watcher?.close(),
  };
};
