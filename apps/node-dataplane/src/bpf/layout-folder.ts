import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type ObjectSpec, pinnedMapInfo } from '@unbounded/libbpf-ts';

/**
 * The pin folder of a layout: `layout-<fingerprint>` says which, and that it is in use; `maps` are its maps, `programs` those of ours that run or are about
 * to (`<name>-<id>`, which no other program has while it is pinned), `links` hold them at their devices.
 *
 * Maps and programs that are in use outlive their pins: only the pins of links must never go before something else is in their place.
 */

export const mapFolder = (layout: string): string => join(layout, 'maps');
export const linkPin = (layout: string, device: string): string => join(layout, 'links', device);
const programFolder = (layout: string): string => join(layout, 'programs');
export const programPin = (layout: string, name: string, id: number): string =>
  join(programFolder(layout), `${name}-${id}`);

const MARK = /^layout-/;

const listFolder = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : []);
/** Devices for which links are pinned. */
export const linkNames = (layout: string): string[] => listFolder(join(layout, 'links'));

type MapSpec = ObjectSpec['maps'][number];

/** Whether a map of that type and size is pinned there. */
export const isAsDeclared = (folder: string, name: string, declared: MapSpec | undefined): boolean => {
  if (!declared) return false;
  try {
    const { type, keySize, valueSize, maxEntries, flags } = pinnedMapInfo(join(folder, name));
    const has = { type, keySize, valueSize, maxEntries, flags };
    return Object.entries(has).every(([field, value]) => declared[field as keyof typeof has] === value);
  } catch {
    return false; // a folder, or something else is pinned there
  }
};

const markOf = (fingerprint: string): string => `layout-${fingerprint}`;
const marksOf = (layout: string): string[] => listFolder(layout).filter((name) => MARK.test(name));

/**
 * Whether an agent made the folder that had no marks yet: of the first layout, whose maps go on being used. Such a folder has no
 * programs; ours has them from the start. A map that came later is not there: its records follow from flags which that agent never set.
 */
const isUnmarked = (layout: string): boolean =>
  marksOf(layout).length === 0 && !existsSync(programFolder(layout)) && listFolder(mapFolder(layout)).length > 0;

/**
 * Makes the folder ready for the maps of a layout; whether those that are in it are its own, and were in use. Others, whatever their
 * names and sizes, are not taken: their pins go, and libbpf makes new ones. Programs that run keep what they had until they are replaced.
 */
export const prepareMaps = (layout: string, fingerprint: string, declared: readonly MapSpec[]): boolean => {
  const [marks, maps] = [marksOf(layout), mapFolder(layout)];
  const specs = new Map(declared.map((spec) => [spec.name, spec]));
  const isOurs =
    (marks.join() === markOf(fingerprint) || isUnmarked(layout)) &&
    listFolder(maps).every((name) => isAsDeclared(maps, name, specs.get(name)));
  mkdirSync(programFolder(layout), { recursive: true });
  if (!isOurs) {
    rmSync(maps, { recursive: true, force: true });
    for (const mark of marks) rmSync(join(layout, mark), { recursive: true }); // after the maps that it is about
  }
  mkdirSync(maps, { recursive: true });
  return isOurs;
};

/** Once devices use the maps of the folder: from now on a successor takes them. */
export const markLayout = (layout: string, fingerprint: string): void => {
  if (marksOf(layout).length === 0) mkdirSync(join(layout, markOf(fingerprint)), { recursive: true });
};

/** The programs of ours that an agent of the layout has attached, or was about to, by their ids. */
export const programIds = (layout: string): Map<number, string> =>
  new Map(
    listFolder(programFolder(layout)).map((name) => [
      Number(/-(\d+)$/.exec(name)?.[1]),
      join(programFolder(layout), name),
    ]),
  );
