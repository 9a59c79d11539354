import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Files of settings in sections, in several folders: which of them count, and what they assign. */

export interface SettingFile {
  /** On the machine, without the root folder. */
  readonly path: string;
  readonly text: string;
}

export interface Assignment {
  readonly path: string;
  readonly section: string;
  readonly key: string;
  readonly value: string;
}

/** Undefined: it is not there. */
export const readSettingFile = (root: string, path: string): SettingFile | undefined => {
  try {
    return { path, text: readFileSync(join(root, path), 'utf8') };
  } catch {
    return undefined;
  }
};

const namesIn = (folder: string): string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

/**
 * Those that end in .conf, by name. Of files with one name that of the first folder counts: an empty one there switches the others off.
 * @param folders the one that counts most first
 */
export const readDropIns = (root: string, folders: readonly string[]): SettingFile[] => {
  const byName = new Map<string, string>();
  for (const folder of folders)
    for (const name of namesIn(join(root, folder)))
      if (name.endsWith('.conf') && !byName.has(name)) byName.set(name, join(folder, name));
  return [...byName.keys()].sort().flatMap((name) => readSettingFile(root, byName.get(name)!) ?? []);
};

/** In the order in which they count: a later one over an earlier one. */
export const assignmentsIn = (files: readonly SettingFile[]): Assignment[] =>
  files.flatMap(({ path, text }) => {
    let section = '';
    return text.split('\n').flatMap((line) => {
      section = /^\s*\[(.*)\]\s*$/.exec(line)?.[1] ?? section;
      const [, key, value] = /^\s*([^#;[=\s][^=]*?)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
      return key === undefined ? [] : [{ path, section, key, value: value! }];
    });
  });
