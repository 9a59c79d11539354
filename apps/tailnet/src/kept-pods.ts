import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '@unbounded/state-files';
import { z } from 'zod';
import type { KeptPod } from './device.plan.ts';

/** Pods of this node that are devices: a folder each, of mode 0700, which the device's process has its identity in as well. */

const MOST_BYTES = 1 << 16;
const METADATA = 'metadata.json';

const kept = z.object({
  podUID: z.string().regex(/^[0-9a-z][0-9a-z-]{0,63}$/),
  namespace: z.string().min(1).max(63),
  podName: z.string().min(1).max(253),
  start: z.enum(['WaitForDevice', 'Immediate']),
  container: z.object({ id: z.string().min(1).max(255), netns: z.string().min(1).max(255) }).exactOptional(),
  addresses: z.array(z.string().max(45)).max(2),
  device: z.object({ hostName: z.string().max(63), controlURL: z.string().max(512) }).exactOptional(),
});

export interface KeptPods {
  /** Of an agent before this one. What cannot be read stays where it is, and is told of; a folder of nothing is removed. */
  read(onUnreadable: (podUID: string, why: string) => void): KeptPod[];
  /** @throws the error of the system call */
  write(pod: KeptPod): void;
  /** With the identity of its device. @throws the error of the system call: what is left is still this pod's */
  remove(podUID: string): void;
  /** Of the LocalAPI. */
  socketOf(podUID: string): string;
}

export const createKeptPods = (folder: string): KeptPods => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const folderOf = (podUID: string): string => join(folder, podUID);
  const fileOf = (podUID: string): string => join(folderOf(podUID), METADATA);
  /** A folder of nothing: what was to be written there could not be, or an agent ended before. */
  const removeIfEmpty = (podUID: string): boolean => {
    try {
      rmdirSync(folderOf(podUID));
      return true;
    } catch {
      return false;
    }
  };
  const readOne = (podUID: string): KeptPod => {
    const text = readFileSync(fileOf(podUID), 'utf8');
    if (text.length > MOST_BYTES) throw new Error(`${text.length} bytes: must be at most ${MOST_BYTES}`);
    const pod = kept.parse(JSON.parse(text));
    if (pod.podUID !== podUID) throw new Error(`it is of pod ${pod.podUID}`);
    return pod;
  };
  return {
    read(onUnreadable) {
      return readdirSync(folder).flatMap((podUID) => {
        try {
          return [readOne(podUID)];
        } catch (error) {
          if (removeIfEmpty(podUID)) return [];
          onUnreadable(podUID, (error as Error).message);
          return [];
        }
      });
    },
    write(pod) {
      try {
        mkdirSync(folderOf(pod.podUID), { mode: 0o700, recursive: true });
        replaceFile(fileOf(pod.podUID), JSON.stringify(pod), { mode: 0o600 });
      } catch (error) {
        removeIfEmpty(pod.podUID);
        throw error;
      }
    },
    remove(podUID) {
      const folderOfPod = folderOf(podUID);
      // Whose it is goes last: what is left of a removal that fails is known to be this pod's.
      for (const name of existsSync(folderOfPod) ? readdirSync(folderOfPod) : [])
        if (name !== METADATA) rmSync(join(folderOfPod, name), { recursive: true, force: true });
      rmSync(folderOfPod, { recursive: true, force: true });
    },
    socketOf: (podUID) => join(folderOf(podUID), 'tailscaled.sock'),
  };
};
