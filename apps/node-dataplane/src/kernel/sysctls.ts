import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { isRecordOf, isString, type StateFile, stateFile } from './state-file.ts';

/**
 * Settings that a node needs to forward at all. They cannot be had for single devices only (the bridge plug-in sets the
 * whole namespace too), so the value that was there before is recorded and put back at uninstall.
 */

const root = '/proc/sys/';
const FORWARDING_V4 = 'net/ipv4/ip_forward';
const FORWARDING_V6 = 'net/ipv6/conf/all/forwarding';

export interface Sysctls {
  ensure(families: { readonly v4: boolean; readonly v6: boolean }): void;
  /** Puts back what was there before us. */
  restore(): void;
}

export const createSysctls = (recordPath: string): Sysctls => {
  const file: StateFile<Record<string, string>> = stateFile(recordPath, isRecordOf(isString));
  const set = (key: string, value: string): void => {
    if (!existsSync(root + key)) return;
    const present = readFileSync(root + key, 'utf8').trim();
    if (present === value) return;
    const record = file.read() ?? {};
    if (record[key] === undefined) file.write({ ...record, [key]: present });
    writeFileSync(root + key, value);
  };
  return {
    ensure({ v4, v6 }) {
      if (v4) set(FORWARDING_V4, '1');
      if (v6) set(FORWARDING_V6, '1');
    },
    restore() {
      for (const [key, value] of Object.entries(file.read() ?? {}))
        if (existsSync(root + key)) writeFileSync(root + key, value);
      file.remove();
    },
  };
};
