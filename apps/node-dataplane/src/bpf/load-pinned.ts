import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadObject, type ObjectSpec, readObject } from '@unbounded/libbpf-ts';
import type { Loaded } from './attachments.ts';
import { isAsDeclared, mapFolder, prepareMaps } from './layout-folder.ts';

/** Programs whose maps are pinned in the folder of their layout: those of an earlier process are taken where they are as declared. */

export interface PinnedObject {
  /** Of the object, for the kernel's messages. */
  readonly name: string;
  /** The compiled programs. */
  readonly objectPath: string;
  readonly pinFolder: string;
  /** As this agent knows them. */
  readonly maps: Readonly<
    Record<string, { readonly keyBytes: number; readonly valueBytes: number; readonly maxEntries: number }>
  >;
  readonly fingerprint: string;
  /** Maps of other programs, which these read. */
  readonly shared?: SharedMaps;
}

/** Taken where they are pinned and as declared; elsewhere the object has maps of its own, without entries. */
interface SharedMaps {
  /** Undefined: there are none on this node. */
  readonly pinFolder: string | undefined;
  readonly names: readonly string[];
}

const pinsOf = (
  { pinFolder, names }: SharedMaps,
  declared: ObjectSpec['maps'],
): Record<string, { pinPath: string }> => {
  if (pinFolder === undefined) return {};
  const folder = mapFolder(pinFolder);
  const there = names.filter((name) =>
    isAsDeclared(
      folder,
      name,
      declared.find((map) => map.name === name),
    ),
  );
  return Object.fromEntries(there.map((name) => [name, { pinPath: join(folder, name) }]));
};

/** @throws TypeError when the programs and this agent were not built together */
const checkLayout = ({ objectPath, maps }: PinnedObject, spec: ObjectSpec): void => {
  for (const [name, { keyBytes, valueBytes, maxEntries }] of Object.entries(maps)) {
    const declared = spec.maps.find((map) => map.name === name);
    const [has, needs] = [
      [declared?.keySize, declared?.valueSize, declared?.maxEntries],
      [keyBytes, valueBytes, maxEntries],
    ];
    if (has.join() !== needs.join())
      throw new TypeError(
        `${objectPath} is of another layout than this agent: map ${name} has key, value and entries ${has.join(', ')} there and must have ${needs.join(', ')}`,
      );
  }
};

/** @throws TypeError when the programs and this agent were not built together; BpfError */
export const loadPinned = (pinned: PinnedObject): Loaded => {
  const { name, objectPath, pinFolder, maps, fingerprint, shared } = pinned;
  const bytes = readFileSync(objectPath);
  const spec = readObject(bytes);
  checkLayout(pinned, spec);
  const hasFormerMaps = prepareMaps(pinFolder, fingerprint, spec.maps);
  const own = Object.fromEntries(Object.keys(maps).map((map) => [map, { pinPath: join(mapFolder(pinFolder), map) }]));
  const pins = { ...own, ...(shared && pinsOf(shared, spec.maps)) };
  return { object: loadObject(bytes, { name, maps: pins }), hasFormerMaps };
};
