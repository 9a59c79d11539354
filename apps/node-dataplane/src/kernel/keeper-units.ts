import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { KEEPER_REJECTED } from '@unbounded/config/ownership';
import { removeFile, replaceFile } from '@unbounded/state-files';
import type { Problem } from '@unbounded/topology';
import type { PeerSpec } from '@unbounded/wireguard';
import { holds } from './held-text.ts';
import { isString } from './state-file.ts';
import { createStateFaults, type StateFaults } from './state-faults.ts';

/**
 * What the agent asks of node-keeper: a file for each user-space WireGuard interface (see apps/node-keeper/README.md).
 * It holds all that the keeper needs to bring a died process back as it was, endpoints included, without the agent.
 */
export interface KeeperUnit {
  readonly device: string;
  /** File with the private key; the key itself stands in no unit. */
  readonly privateKeyFile: string;
  readonly listenPort: number;
  readonly peers: readonly PeerSpec[];
}

const fileOf = (folder: string, device: string): string => join(folder, `${device}.json`);

/** Writes the unit if it is not like that already. Returns whether it was written; what fails is reported by `faults`. */
export const writeUnit = (folder: string, unit: KeeperUnit, faults: StateFaults = createStateFaults()): boolean => {
  const file = fileOf(folder, unit.device);
  const text = JSON.stringify(unit);
  if (holds(file, text)) {
    faults.settle(file);
    return false;
  }
  return faults.attempt(file, () => replaceFile(file, text, { mode: 0o600 }));
};

/** Returns whether it is gone; what fails is reported by `faults` and repeated. */
export const removeUnit = (folder: string, device: string, faults: StateFaults = createStateFaults()): boolean => {
  const file = fileOf(folder, device);
  return faults.attempt(file, () => removeFile(file));
};

/** What node-keeper could not read, as it writes it beside the units. */
export const rejectedUnits = (folder: string): Problem[] => {
  try {
    const rejected: unknown = JSON.parse(readFileSync(join(dirname(folder), basename(KEEPER_REJECTED)), 'utf8'));
    if (!Array.isArray(rejected)) return [];
    return rejected.filter(isString).map((reason) => ({
      reason: 'UnitRejected',
      message: `node-keeper rejected a unit and keeps what runs as it was configured: ${reason}; give the agent and node-keeper the same version, and restart the agent, which writes its units anew`,
    }));
  } catch {
    return []; // there is none: nothing was rejected
  }
};

/** Devices for which there is a unit. A folder that cannot be read has none that we know of. */
export const unitDevices = (folder: string): string[] => {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.json'))
      .map((name) => name.slice(0, -'.json'.length));
  } catch {
    return [];
  }
};
