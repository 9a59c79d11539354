import { readFileSync, writeFileSync } from 'node:fs';

/** Kernel settings by their path below /proc/sys: `net/ipv4/ip_forward`. */

/** Of a setting that is not there (a kernel without IPv6, a device that went this moment) undefined. */
const unlessAbsent = <T>(access: () => T): T | undefined => {
  try {
    return access();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return undefined;
  }
};

export const readSetting = (key: string): string | undefined =>
  unlessAbsent(() => readFileSync(`/proc/sys/${key}`, 'utf8').trim());

/** @returns whether it was another before. @throws Error when it is there and cannot be written */
export const writeSetting = (key: string, value: string): boolean => {
  const present = readSetting(key);
  if (present === undefined || present === value) return false;
  return unlessAbsent(() => (writeFileSync(`/proc/sys/${key}`, value), true)) ?? false;
};
