import { basename, dirname, join } from 'node:path';
import { KEEPER_REJECTED, RELAY_UNIT } from '@unbounded/config/ownership';
import { rejections, tunnelUnit, type TunnelUnit, unitFile } from '@unbounded/keeper-protocol';
import { removeFile } from '@unbounded/state-files';
import type { Problem } from '@unbounded/topology';
import { createStateFaults, type StateFaults } from '../../state/state-faults.ts';

/** What the agent asks of node-keeper for user-space WireGuard interfaces, and what node-keeper answers (libs/keeper-protocol). */

/** Writes the unit if it is not like that already. Returns whether it was written; what fails is reported by `faults`. */
export const writeUnit = (folder: string, unit: TunnelUnit, faults: StateFaults = createStateFaults()): boolean => {
  const file = unitFile(folder, unit.device);
  let isWritten = false;
  faults.attempt(file, () => {
    isWritten = tunnelUnit.write(file, unit);
  });
  return isWritten;
};

/** Returns whether it is gone; what fails is reported by `faults` and repeated. */
export const removeUnit = (folder: string, device: string, faults: StateFaults = createStateFaults()): boolean => {
  const file = unitFile(folder, device);
  return faults.attempt(file, () => removeFile(file));
};

const reasonsIn = (file: string): readonly string[] => {
  try {
    return rejections.read(file);
  } catch (error) {
    // There is none: nothing was rejected.
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? [] : [`${file}: ${(error as Error).message}`];
  }
};

const rejected = (reason: string): Problem => ({
  reason: 'UnitRejected',
  message: `node-keeper rejected a unit and keeps what runs as it was configured: ${reason}; give the agent and node-keeper the same version, and restart the agent, which writes its units anew`,
});

/** Of the relay's unit, which has its name in front, as each unit. */
const isOfRelay = (reason: string): boolean => reason.startsWith(`${basename(RELAY_UNIT)}: `);

/** What tunnel units node-keeper could not read, as it writes it beside their folder. */
export const rejectedUnits = (folder: string): Problem[] =>
  reasonsIn(join(dirname(folder), basename(KEEPER_REJECTED)))
    .filter((reason) => !isOfRelay(reason))
    .map(rejected);

/** Why node-keeper could not read the relay's unit. */
export const rejectedRelayUnit = (unitFile: string): Problem[] =>
  reasonsIn(join(dirname(unitFile), basename(KEEPER_REJECTED)))
    .filter(isOfRelay)
    .map(rejected);
