import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { KeeperProtocolError } from './protocol-file.ts';
import { tunnelUnit, type TunnelUnit } from './tunnel-unit.ts';

/** The folder of tunnel units: one file a device, named after it. */

const SUFFIX = '.json';

export const unitFile = (folder: string, device: string): string => join(folder, `${device}${SUFFIX}`);

export interface Units {
  readonly units: ReadonlyMap<string, TunnelUnit>;
  /** Files that hold no unit, with the reason. */
  readonly refused: readonly string[];
  /** Devices whose units are there and cannot be used now: what runs for them goes on. */
  readonly unclear: ReadonlySet<string>;
  /** false: the folder could not be read, so nothing is known of the units that are not in `units`. */
  readonly isComplete: boolean;
}

/** Names of the unit files; the error when the folder cannot be read. A missing folder holds none. */
const namesIn = (folder: string): string[] | Error => {
  try {
    return readdirSync(folder).filter((file) => file.endsWith(SUFFIX));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? [] : (error as Error);
  }
};

const deviceOf = (name: string): string => name.slice(0, -SUFFIX.length);

/** @throws KeeperProtocolError when it is no unit, or another device's */
const parseUnit = (text: string, name: string): TunnelUnit => {
  const unit = tunnelUnit.parse(text);
  if (unit.device === deviceOf(name)) return unit;
  throw new KeeperProtocolError(`it is for ${unit.device}: the file must be named ${unit.device}${SUFFIX}`);
};

interface Seen {
  readonly text: string;
  readonly outcome: TunnelUnit | Error;
}

const look = (name: string, text: string): Seen => {
  try {
    return { text, outcome: parseUnit(text, name) };
  } catch (error) {
    return { text, outcome: error as Error };
  }
};

/**
 * Reads every unit of a folder; what is wrong with one stands in `refused`, and the others count. Never throws. A file whose
 * text is as it was is not parsed again: the keeper looks ten times a second.
 */
export const createUnitsReader = (): ((folder: string) => Units) => {
  let seen: ReadonlyMap<string, Seen> = new Map();
  return (folder) => {
    const units = new Map<string, TunnelUnit>();
    const unclear = new Set<string>();
    const names = namesIn(folder);
    if (names instanceof Error) return { units, unclear, refused: [`${folder}: ${names.message}`], isComplete: false };
    const refused: string[] = [];
    const now = new Map<string, Seen>();
    for (const name of names) {
      try {
        const text = tunnelUnit.readText(join(folder, name));
        const before = seen.get(name);
        const entry = before?.text === text ? before : look(name, text);
        now.set(name, entry);
        if (entry.outcome instanceof Error) throw entry.outcome;
        units.set(entry.outcome.device, entry.outcome);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue; // taken away while we looked
        refused.push(`${name}: ${(error as Error).message}`);
        unclear.add(deviceOf(name));
      }
    }
    seen = now;
    return { units, unclear, refused, isComplete: true };
  };
};

/** Devices for which there is a unit. A folder that cannot be read has none that we know of. */
export const unitDevices = (folder: string): string[] => {
  const names = namesIn(folder);
  return names instanceof Error ? [] : names.map(deviceOf);
};
