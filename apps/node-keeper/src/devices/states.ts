import { mkdirSync } from 'node:fs';
import { type DeviceState, deviceState, unitFile, unitNames } from '@unbounded/keeper-protocol';
import { removeFile } from '@unbounded/state-files';
import type { Logger } from '@unbounded/telemetry';

/** What has become of each unit, in files that the writer of units reads. */

export interface DeviceStates {
  get(podUID: string): DeviceState | undefined;
  /** Of all pods that have one. */
  pods(): string[];
  /** It counts for this keeper also where it cannot be written. */
  set(podUID: string, state: DeviceState): void;
  /** Tries to write those again that could not be written. */
  writeUnwritten(): void;
  /** @throws the error of the system call; it stays */
  remove(podUID: string): void;
}

/** Of a keeper before this one what it has left counts, but for the starts of its processes. */
export const createStates = (folder: string, logger: Logger): DeviceStates => {
  const known = new Map<string, DeviceState>();
  /** Their writers of units know nothing of them, or a former state. */
  const unwritten = new Set<string>();
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const read = (podUID: string): DeviceState | undefined => {
    try {
      return deviceState.read(unitFile(folder, podUID));
    } catch {
      return undefined; // without it the network is set up once more
    }
  };
  for (const podUID of unitNames(folder)) {
    const state = read(podUID);
    if (state) known.set(podUID, { ...state, starts: 0 });
  }
  const write = (podUID: string, state: DeviceState): void => {
    try {
      deviceState.write(unitFile(folder, podUID), state, { durable: false });
      unwritten.delete(podUID);
    } catch (error) {
      if (!unwritten.has(podUID))
        logger.error({ pod: podUID, error: (error as Error).message }, 'cannot write the state of the unit');
      unwritten.add(podUID);
    }
  };
  return {
    get: (podUID: string) => known.get(podUID),
    pods: () => [...known.keys()],
    set(podUID: string, state: DeviceState): void {
      known.set(podUID, state);
      write(podUID, state);
    },
    writeUnwritten() {
      for (const podUID of unwritten) write(podUID, known.get(podUID)!);
    },
    remove(podUID: string): void {
      removeFile(unitFile(folder, podUID));
      known.delete(podUID);
      unwritten.delete(podUID);
    },
  };
};
