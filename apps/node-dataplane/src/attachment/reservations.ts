import { existsSync, readdirSync, rmSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { Logger } from '@unbounded/telemetry';

/**
 * The addresses that the plugin host-local keeps reserved: a file each, named as the address, whose content is the container ID. DEL releases
 * what has its own ID. A power cut leaves files without content, and reservations of sandboxes that the runtime knows nothing of: no DEL
 * releases those, and once the block is used up no pod starts.
 */

const reserved = (folder: string): string[] =>
  existsSync(folder) ? readdirSync(folder).filter((name) => isIP(name) !== 0) : [];

export interface ReservationsParts {
  /** Of host-local, for our list. */
  readonly folder: string;
  /** Our list, which does not outlive a boot: without it the runtime calls no plugin of it. */
  readonly list: string;
  /** Whether no pod has an address of ours now: none is registered, and the pod bridge has no port. */
  readonly isUnused: () => Promise<boolean>;
  readonly logger: Logger;
}

/** Before the first list of a boot is written: no sandbox outlives a boot. Never rejects. */
export const releaseOfFormerBoot = async ({ folder, list, isUnused, logger }: ReservationsParts): Promise<void> => {
  if (existsSync(list)) return;
  try {
    const names = reserved(folder);
    if (names.length === 0 || !(await isUnused())) return;
    for (const name of names) rmSync(join(folder, name), { force: true });
    logger.info({ folder, addresses: names.length }, 'released addresses of pods of the boot before');
  } catch (error) {
    const { message } = error as Error;
    logger.warn({ folder, error: message }, 'cannot release addresses of pods of the boot before: they stay reserved');
  }
};
