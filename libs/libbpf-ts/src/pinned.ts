import { mkdirSync, statfsSync } from 'node:fs';

import type { BpfLink, BpfMap, BpfProgram, Codec, MapInfo } from './api.port.ts';
import { attempt } from './bpf-error.ts';
import { infoOf, typedMap } from './map.ts';
import { addon, type Handle, KIND } from './native.ts';
import { liveLink, liveProgram } from './program.ts';

const open = (kind: keyof typeof KIND, path: string): Handle =>
  attempt(path, () => addon().openPinned(KIND[kind], path));

/** Closes the handle again when it is not what the caller expects. */
const checked = <T>(handle: Handle, use: (handle: Handle) => T): T => {
  try {
    return use(handle);
  } catch (error) {
    addon().closeHandle(handle);
    throw error;
  }
};

/** @throws BpfError ENOENT; TypeError when something else is pinned there, or its layout is another */
export const openPinnedMap = <K, V>(path: string, key: Codec<K>, value: Codec<V>): BpfMap<K, V> =>
  checked(open('map', path), (handle) => typedMap(handle, key, value));

/** What the kernel knows of a pinned map, whatever its layout. @throws BpfError ENOENT; TypeError when something else is pinned there */
export const pinnedMapInfo = (path: string): MapInfo => {
  const handle = open('map', path);
  try {
    return infoOf(handle);
  } finally {
    addon().closeHandle(handle);
  }
};

/** @throws BpfError ENOENT; TypeError when something else is pinned there */
export const openPinnedProgram = (path: string): BpfProgram => liveProgram(open('program', path));

/** @throws BpfError ENOENT; TypeError when something else is pinned there */
export const openPinnedLink = (path: string): BpfLink => liveLink(open('link', path));

const BPF_FS_MAGIC = 0xcafe4a11;

/** True when the folder lies in a bpffs: only there can objects be pinned. */
export const isBpffs = (path: string): boolean => {
  try {
    return statfsSync(path).type === BPF_FS_MAGIC;
  } catch {
    return false;
  }
};

/** Mounts a bpffs (mode 0700) at the folder, which is made if missing. @throws BpfError EPERM, … */
export const mountBpffs = (path: string): void => {
  mkdirSync(path, { recursive: true });
  attempt(path, () => addon().mountBpffs(path));
};

/** Takes the mount away; what is pinned in it goes once nobody uses it. @throws BpfError EINVAL when nothing is mounted */
export const unmountBpffs = (path: string): void => attempt(path, () => addon().unmount(path));

/** Width of per-CPU values: possible CPUs, not only those online. */
export const possibleCpus = (): number => addon().possibleCpus();
