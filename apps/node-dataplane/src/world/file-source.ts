import type { KindTable } from '@unbounded/crds';
import { openWatcher } from '../folder-watcher.ts';
import { readObjectFiles } from './object-files.ts';
import type { Snapshot, WorldSource } from './source.port.ts';

const UNWATCHED_READ_MS = 5000;

interface FileSourceOptions<T extends KindTable> {
  readonly kinds: T;
  readonly nodeName: string;
  /** Called once for a reason. */
  readonly onError: (error: Error) => void;
  /** Between readings while the folder cannot be watched. */
  readonly unwatchedReadMs?: number;
}

/** Objects from a folder; read again whenever a file of it changes. A folder that cannot be read keeps the last good state. */
export const createFileSource = <T extends KindTable>(
  folder: string,
  { kinds, nodeName, onError, unwatchedReadMs = UNWATCHED_READ_MS }: FileSourceOptions<T>,
): WorldSource<T> => {
  let snapshot: Snapshot<T> | undefined;
  let [text, reason] = ['', ''];
  const handlers: (() => void)[] = [];
  const read = (): void => {
    try {
      const found = readObjectFiles(folder, kinds, nodeName);
      reason = '';
      const before = text;
      text = JSON.stringify(found);
      if (text === before) return;
      snapshot = { ...found, version: (snapshot?.version ?? 0) + 1 };
      for (const handler of handlers) handler();
    } catch (error) {
      const { message } = error as Error;
      if (message !== reason) onError(error as Error);
      reason = message;
    }
  };
  const watcher = openWatcher(folder, read, (error) =>
    onError(new Error(`${error.message}: read every ${unwatchedReadMs} ms instead`)),
  );
  const watchAndRead = (): void => {
    watcher.ensure(); // first: what changes while it is read is read again
    read();
  };
  watchAndRead();
  const unwatched = setInterval(() => watcher.isWatching || watchAndRead(), unwatchedReadMs).unref();
  return {
    snapshot: () => snapshot,
    onChange: (handler) => void handlers.push(handler),
    stop: async () => {
      clearInterval(unwatched);
      watcher.close();
    },
  };
};
