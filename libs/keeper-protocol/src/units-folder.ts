import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type DeviceUnit, deviceUnit } from './device-unit.ts';
import { KeeperProtocolError, type ProtocolFile } from './protocol-file.ts';
import { tunnelUnit, type TunnelUnit } from './tunnel-unit.ts';

/** A folder of units: one file each, named after what it is for. */

export interface UnitKind<Unit> {
  readonly file: ProtocolFile<Unit>;
  /** Of the file, without its suffix. */
  readonly nameOf: (unit: Unit) => string;
}
export const tunnelUnits: UnitKind<TunnelUnit> = { file: tunnelUnit, nameOf: ({ device }) => device };
export const deviceUnits: UnitKind<DeviceUnit> = { file: deviceUnit, nameOf: ({ podUID }) => podUID };

const SUFFIX = '.json';

export const unitFile = (folder: string, name: string): string => join(folder, `${name}${SUFFIX}`);

export interface Units<Unit> {
  readonly units: ReadonlyMap<string, Unit>;
  /** Files that hold no unit, with the reason. */
  readonly refused: readonly string[];
  /** Names whose units are there and cannot be used now: what runs for them goes on. */
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

const withoutSuffix = (file: string): string => file.slice(0, -SUFFIX.length);

/** @throws KeeperProtocolError when it is no unit, or another one's */
const parseUnit = <Unit>({ file, nameOf }: UnitKind<Unit>, text: string, name: string): Unit => {
  const unit = file.parse(text);
  const own = nameOf(unit);
  if (own === withoutSuffix(name)) return unit;
  throw new KeeperProtocolError(`it is for ${own}: the file must be named ${own}${SUFFIX}`);
};

interface Seen<Unit> {
  readonly text: string;
  readonly outcome: Unit | Error;
}

const look = <Unit>(kind: UnitKind<Unit>, name: string, text: string): Seen<Unit> => {
  try {
    return { text, outcome: parseUnit(kind, text, name) };
  } catch (error) {
    return { text, outcome: error as Error };
  }
};

/**
 * Reads every unit of a folder; what is wrong with one stands in `refused`, and the others count. Never throws. A file whose
 * text is as it was is not parsed again: the keeper looks ten times a second.
 */
export const createUnitsReader = <Unit extends object>(kind: UnitKind<Unit>): ((folder: string) => Units<Unit>) => {
  let seen: ReadonlyMap<string, Seen<Unit>> = new Map();
  return (folder) => {
    const units = new Map<string, Unit>();
    const unclear = new Set<string>();
    const names = namesIn(folder);
    if (names instanceof Error) return { units, unclear, refused: [`${folder}: ${names.message}`], isComplete: false };
    const refused: string[] = [];
    const now = new Map<string, Seen<Unit>>();
    for (const name of names) {
      try {
        const text = kind.file.readText(join(folder, name));
        const before = seen.get(name);
        const entry = before?.text === text ? before : look(kind, name, text);
        now.set(name, entry);
        if (entry.outcome instanceof Error) throw entry.outcome;
        units.set(withoutSuffix(name), entry.outcome);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue; // taken away while we looked
        refused.push(`${name}: ${(error as Error).message}`);
        unclear.add(withoutSuffix(name));
      }
    }
    seen = now;
    return { units, unclear, refused, isComplete: true };
  };
};

/** Names for which there is a unit. A folder that cannot be read has none that we know of. */
export const unitNames = (folder: string): string[] => {
  const names = namesIn(folder);
  return names instanceof Error ? [] : names.map(withoutSuffix);
};
