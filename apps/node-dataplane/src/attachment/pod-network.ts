import type { PodAttachment } from './pods.ts';

/** What happens to pods; `SourceGuard` is one. */
export interface PodNetwork {
  /** Any error refuses the pod for now. */
  attach(pod: PodAttachment): Promise<void>;
  detach(containerId: string, interfaceName: string): Promise<void>;
  /** What is wrong, in words. */
  check(containerId: string, interfaceName: string): Promise<string | undefined>;
}

/** A section refused a pod. */
export class HookError extends Error {}
