import { mkdirSync } from 'node:fs';
import { type DeviceState, deviceState, unitFile, unitNames } from '@unbounded/keeper-protocol';
import { removeFile } from '@unbounded/state-files';

/** What has become of each unit, in files that the writer of units reads. */

export interface DeviceStates {
  get(podUID: string): DeviceState | undefined;
  /** Of all pods that have one. */
  pods(): string[];
  /** @throws the error of the system call; it counts for this keeper all the same */
  set(podUID: string, state: DeviceState): void;
  remove(podUID: string): void;
}

/** Of a keeper before this one what it has left counts, but for the starts of its processes. */
export const createStates = (folder: string): DeviceStates => {
  const known = new Map<string, DeviceState>();
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
  return {
    get: (podUID: string) => known.get(podUID),
    pods: () => [...known.keys()],
    set(podUID: string, state: DeviceState): void {
      known.set(podUID, state);
      deviceState.write(unitFile(folder, podUID), state, { durable: false });
    },
    remove(podUID: string): void {
      removeFile(unitFile(folder, podUID));
      known.delete(podUID);
    },
  };
};
