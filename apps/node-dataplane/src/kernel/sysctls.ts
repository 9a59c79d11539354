import { existsSync, writeFileSync } from 'node:fs';
import type { Problem } from '@unbounded/topology';
import { readSetting, writeSetting } from './proc-sys.ts';
import { isRecordOf, isString, type StateFile, stateFile } from '../state/state-file.ts';
import type { StateFaults } from '../state/state-faults.ts';

/**
 * Settings that a node needs to forward at all. They cannot be had for single devices only (the bridge plug-in sets the
 * whole namespace too), so the value that was there before is recorded and put back at uninstall.
 */

const root = '/proc/sys/';
const FORWARDING = { 4: 'net/ipv4/ip_forward', 6: 'net/ipv6/conf/all/forwarding' } as const;
const acceptRa = (device: string): string => `net/ipv6/conf/${device}/accept_ra`;

const ACCEPT_RA = /^net\/ipv6\/conf\/[^/]+\/accept_ra$/;

/** Kernel's ip-sysctl: 1 accepts router advertisements unless forwarding is on, 2 also when it is. */
const UNLESS_FORWARDING = '1';
const ALWAYS = '2';

export interface Sysctls {
  /**
   * @param learners devices that take router advertisements, asked for before IPv6 forwarding is turned on, and afterwards for
   *   those that came since: with `accept_ra` 1 the kernel would delete the default route that it has from them, and take no more
   */
  ensure(
    families: { readonly v4: boolean; readonly v6: boolean },
    learners?: () => Promise<readonly string[]>,
  ): Promise<readonly Problem[]>;
  /**
   * Forwarding of a family that `ensure` was last asked for, on again at once. Of IPv6 only if `ensure` has turned it on: else a pass
   * must look at router advertisements first.
   * @returns whether it was off. @throws Error when it cannot be written
   */
  again(family: 4 | 6): boolean;
  /** Puts back what was there before us. */
  restore(): void;
}

const failed = (key: string, error: unknown): Problem => ({
  reason: 'SysctlFailed',
  message: `${key.replaceAll('/', '.')} cannot be set: ${(error as Error).message}; set it by hand, or let the agent write /proc/sys`,
});

export const createSysctls = (recordPath: string, faults?: StateFaults): Sysctls => {
  const file: StateFile<Record<string, string>> = stateFile(recordPath, isRecordOf(isString), faults);
  let record: Record<string, string> | undefined;

  const recorded = (): Record<string, string> => (record ??= file.read() ?? {});
  const set = (key: string, value: string): void => {
    const present = readSetting(key);
    if (present === undefined || present === value) return;
    const before = recorded();
    before[key] ??= present; // also when the file cannot be written: forwarding matters more
    file.write(before);
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

  const ensureV6 = async (learners: () => Promise<readonly string[]>): Promise<Problem[]> => {
    // Where others turned it on, whether such a router learns from advertisements is their choice.
    const isOn = (readSetting(FORWARDING[6]) ?? '1') === '1';
    if (isOn && recorded()[FORWARDING[6]] === undefined) return [];
    const known = Object.keys(recorded()).filter((key) => ACCEPT_RA.test(key));
    const keys = new Set([...(await learners()).map(acceptRa), ...known]);
    const kept = setAll([...keys].filter((key) => readSetting(key) === UNLESS_FORWARDING).map((key) => [key, ALWAYS]));
    // Without its default route the node would lose the API server: rather no forwarding yet.
    return [...kept, ...(kept.length > 0 ? [] : setAll([[FORWARDING[6], '1']]))];
  };

  /** Families whose forwarding may be turned on again without a further thought. */
  const forwarding = new Set<4 | 6>();

  return {
    async ensure({ v4, v6 }, learners = async () => []) {
      const problems = [...(v4 ? setAll([[FORWARDING[4], '1']]) : []), ...(v6 ? await ensureV6(learners) : [])];
      forwarding.clear();
      if (v4) forwarding.add(4);
      // Where others turned it on, nothing is known of who learns from advertisements.
      if (v6 && recorded()[FORWARDING[6]] !== undefined) forwarding.add(6);
      return problems;
    },
    again(family) {
      return forwarding.has(family) && writeSetting(FORWARDING[family], '1');
    },
    restore() {
      // accept_ra last: while forwarding is on, 1 means that advertisements are not taken.
      const entries = Object.entries(file.read() ?? {});
      for (const [key, value] of entries.toSorted(([a], [b]) => Number(ACCEPT_RA.test(a)) - Number(ACCEPT_RA.test(b))))
        if (existsSync(root + key)) writeFileSync(root + key, value);
      file.remove();
      record = undefined;
    },
  };
};
