/** What is kept of pods on a disk that is full (full-disk.kernel.spec.ts), in a mount namespace of its own. Prints what it saw as JSON. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KeptPod } from './device.plan.ts';
import { createKeptPods } from './kept-pods.ts';

export interface Report {
  /** Codes of what was tried: a new pod, and a change of one that is kept. */
  readonly refused: readonly (string | undefined)[];
  readonly foldersWhileFull: readonly string[];
  readonly keptWhileFull: readonly KeptPod[];
  readonly foldersAfterwards: readonly string[];
}

const codeOf = (attempt: () => void): string | undefined => {
  try {
    attempt();
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
};

const podOf = (podUID: string, addresses: readonly string[] = []): KeptPod => ({
  ...{ podUID, namespace: 'shop', podName: podUID, start: 'Immediate', addresses },
});

const disk = mkdtempSync(join(tmpdir(), 'kept-full-'));
execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'kept-full', disk]);
try {
  const folder = join(disk, 'pods');
  const filler = join(disk, 'filler');
  const kept = createKeptPods(folder);
  kept.write(podOf('a'));
  codeOf(() => writeFileSync(filler, Buffer.alloc(1 << 20)));
  const refused = [() => kept.write(podOf('b')), () => kept.write(podOf('a', ['100.64.0.7']))].map(codeOf);
  const foldersWhileFull = readdirSync(folder);
  const keptWhileFull = kept.read(() => undefined);
  rmSync(filler);
  kept.write(podOf('b'));
  const report: Report = {
    refused,
    foldersWhileFull,
    keptWhileFull,
    foldersAfterwards: readdirSync(folder).toSorted(),
  };
  console.log(JSON.stringify(report));
} finally {
  execFileSync('umount', [disk]);
  rmSync(disk, { recursive: true });
}
