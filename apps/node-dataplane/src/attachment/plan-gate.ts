import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Logger } from '@unbounded/telemetry';

/**
 * Whether a plan has been applied since the node booted. Before that a pod's packets to other nodes would find no overlay.
 * An agent that starts anew on a node that runs finds it applied: the kernel still holds it.
 */
export interface PlanGate {
  readonly isOpen: boolean;
  open(): void;
}

/** The kernel's state lasts as long as this boot and this network namespace. */
const bootOf = (): string =>
  `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${statSync('/proc/self/ns/net').ino}\n`;

const read = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
};

/** @param file of the boot in which a plan was last applied */
export const openPlanGate = (file: string, logger: Logger): PlanGate => {
  const boot = bootOf();
  let isOpen = read(file) === boot;
  return {
    get isOpen() {
      return isOpen;
    },
    open() {
      if (isOpen) return;
      isOpen = true;
      try {
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, boot, { mode: 0o600 });
      } catch (error) {
        logger.warn({ file, error: (error as Error).message }, 'cannot record that a plan was applied in this boot');
      }
    },
  };
};
