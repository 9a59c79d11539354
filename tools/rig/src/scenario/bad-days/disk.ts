import type { LabNode } from '../../layout/layout.ts';
import { onNode } from '../../node/node.ts';

/** Disks that are full, or no longer take writes. */

export interface Fault {
  begin(): void;
  end(): void;
}

const STATE = '/var/lib/unbounded';
const STAND_IN = '/run/small-disk';

const bash = (node: LabNode, script: string): string => onNode(node.name, 'bash', '-c', script);

/** The disk of the state folder is small, and everything that was free is taken. */
export const fullDisk = (node: LabNode): Fault => ({
  begin: () =>
    void bash(
      node,
      `mkdir -p ${STAND_IN} && mount -t tmpfs -o size=1m small ${STAND_IN} && cp -a ${STATE}/. ${STAND_IN}/ &&
       mount --bind ${STAND_IN} ${STATE} && (dd if=/dev/zero of=${STATE}/filler bs=1k 2>/dev/null || true)`,
    ),
  end: () => void bash(node, `rm ${STATE}/filler`),
});

/** The small disk goes; what was written to it is kept. */
export const changeDisk = (node: LabNode): void =>
  void bash(node, `umount ${STATE} && cp -a ${STAND_IN}/. ${STATE}/ && umount ${STAND_IN}`);

export const readOnlyDisk = (node: LabNode): Fault => ({
  begin: () => void bash(node, `mount --bind ${STATE} ${STATE} && mount -o remount,ro,bind ${STATE}`),
  end: () => void bash(node, `umount ${STATE}`),
});

/** As a power cut may leave files that were being written: half of each, and nothing of every other one. */
export const cutFilesShort = (node: LabNode): void =>
  void bash(
    node,
    `n=0; for file in $(find ${STATE} -type f); do n=$((n + 1)); truncate -s $(( n % 2 ? $(stat -c %s "$file") / 2 : 0 )) "$file"; done`,
  );
