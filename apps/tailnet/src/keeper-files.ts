import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type DeviceState,
  deviceState,
  type DeviceUnit,
  deviceUnit,
  networkDigest,
  unitFile,
} from '@unbounded/keeper-protocol';
import { removeFile } from '@unbounded/state-files';

/** What is asked of the keeper of devices, and what it has come to. */
export interface KeeperFiles {
  /** Undefined: nothing. @throws KeeperProtocolError; the error of the system call */
  ask(podUID: string, unit: DeviceUnit | undefined): void;
  /** Undefined: it has not said anything yet, or it cannot be read. */
  stateOf(podUID: string): DeviceState | undefined;
  /** Nothing of the pod runs or stands any more; not where it cannot be read. */
  hasEnded(podUID: string): boolean;
}

/** Whether the network stands that the unit asks for. */
export const stands = (unit: DeviceUnit, state: DeviceState | undefined): boolean =>
  state?.network === networkDigest(unit);

export const createKeeperFiles = (runFolder: string): KeeperFiles => {
  const [units, states] = [join(runFolder, 'units'), join(runFolder, 'states')];
  mkdirSync(units, { recursive: true, mode: 0o700 });
  return {
    ask(podUID, unit) {
      if (unit) deviceUnit.write(unitFile(units, podUID), unit, { durable: false });
      else removeFile(unitFile(units, podUID));
    },
    stateOf(podUID) {
      try {
        return deviceState.read(unitFile(states, podUID));
      } catch {
        return undefined;
      }
    },
    hasEnded: (podUID) => !existsSync(unitFile(states, podUID)),
  };
};
