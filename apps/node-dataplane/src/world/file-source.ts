import { watch } from 'node:fs';
import type { KindTable } from '@unbounded/crds';
import { readObjectFiles } from './object-files.ts';
import type { Snapshot, WorldSource } from './source.port.ts';

/** Objects from a folder; read again whenever a file of it changes. A folder that cannot be read keeps the last good state. */
export const createFileSource = <T extends KindTable>(
  folder: string,
  {
    kinds,
    nodeName,
    onError,
  }: { readonly kinds: T; readonly nodeName: string; readonly onError: (error: Error) => void },
): WorldSource<T> => {
  let snapshot: Snapshot<T> | undefined;
  const handlers: (() => void)[] = [];
  const read = (): void => {
    try {
      snapshot = { ...readObjectFiles(folder, kinds, nodeName), version: (snapshot?.version ?? 0) + 1 };
      for (const handler of handlers) handler();
    } catch (error) {
      onError(error as Error);
    }
  };
  const watcher = watch(folder, read); // first: what changes while it is read is read again
  read();
  return {
    snapshot: () => snapshot,
    onChange: (handler) => void handlers.push(handler),
    stop: async () => watcher.close(),
  };
};
