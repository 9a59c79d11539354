import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { Problem } from '@unbounded/topology';
import { isRecordOf, isString, type StateFile, stateFile } from './state-file.ts';
import type { StateFaults } from './state-faults.ts';

/**
 * Settings that a node needs to forward at all. They cannot be had for single devices only (the bridge plug-in sets the
 * whole namespace too), so the value that was there before is recorded and put back at uninstall.
 */

const root = '/proc/sys/';
const FORWARDING_V4 = 'net/ipv4/ip_forward';
const FORWARDING_V6 = 'net/ipv6/conf/all/forwarding';
const acceptRa = (device: string): string => `net/ipv6/conf/${device}/accept_ra`;

/** Kernel's ip-sysctl: 1 accepts router advertisements unless forwarding is on, 2 also when it is. */
const UNLESS_FORWARDING = '1';
const ALWAYS = '2';

export interface Sysctls {
  /**
   * @param learners devices that take router advertisements, asked for before IPv6 forwarding is turned on: with `accept_ra` 1
   *   the kernel would delete the default route that it has from them, and take no more
   */
  ensure(
    families: { readonly v4: boolean; readonly v6: boolean },
    learners?: () => Promise<readonly string[]>,
  ): Promise<readonly Problem[]>;
  /** Puts back what was there before us. */
  restore(): void;
}

const read = (key: string): string | undefined =>
  existsSync(root + key) ? readFileSync(root + key, 'utf8').trim() : undefined;

const failed = (key: string, error: unknown): Problem => ({
  reason: 'SysctlFailed',
  message: `${key.replaceAll('/', '.')} cannot be set: ${(error as Error).message}; set it by hand, or let the agent write /proc/sys`,
});

export const createSysctls = (recordPath: string, faults?: StateFaults): Sysctls => {
  const file: StateFile<Record<string, string>> = stateFile(recordPath, isRecordOf(isString), faults);
  let record: Record<string, string> | undefined;

  const set = (key: string, value: string): void => {
    const present = read(key);
    if (present === undefined || present === value) return;
    record ??= file.read() ?? {};
    record[key] ??= present; // also when the file cannot be written: forwarding matters more
    file.write(record);
    writeFileSync(root + key, value);
  };
  const setAll = (wanted: readonly (readonly [key: string, value: string])[]): Problem[] =>
    wanted.flatMap(([key, value]) => {
      try {
        set(key, value);
        return [];
      } catch (error) {
        return [failed(key, error)];
      }
    });

  return {
    async ensure({ v4, v6 }, learners = async () => []) {
      const problems = v4 ? setAll([[FORWARDING_V4, '1']]) : [];
      if (!v6 || (read(FORWARDING_V6) ?? '1') === '1') return problems;
      const devices = (await learners()).filter((device) => read(acceptRa(device)) === UNLESS_FORWARDING);
      const kept = setAll(devices.map((device) => [acceptRa(device), ALWAYS]));
      // Without its default route the node would lose the API server: rather no forwarding yet.
      return [...problems, ...kept, ...(kept.length > 0 ? [] : setAll([[FORWARDING_V6, '1']]))];
    },
    restore() {
      // The last first: while forwarding is on, accept_ra 1 means that advertisements are not taken.
      for (const [key, value] of Object.entries(file.read() ?? {}).toReversed())
        if (existsSync(root + key)) writeFileSync(root + key, value);
      file.remove();
    },
  };
};
