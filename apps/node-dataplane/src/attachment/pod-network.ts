import type { Annotations, ResultAddition } from './hook.port.ts';
import type { PodAttachment } from './pods.ts';

/** What every pod needs at its port; `SourceGuard` is one. */
export interface PodPorts {
  /** Registers the pod. Any error refuses it for now; nothing is registered then. */
  attach(pod: PodAttachment): Promise<void>;
  /** Unknown ones are fine: DEL may come twice. */
  detach(containerId: string, interfaceName: string): Promise<void>;
  /** What is wrong, in words. */
  check(containerId: string, interfaceName: string): Promise<string | undefined>;
}

/** What happens to pods. */
export interface PodNetwork extends Omit<PodPorts, 'attach'> {
  /**
   * @param passed undefined: the runtime passes no annotations
   * @returns what is added to the result, in this order. Any error refuses the pod for now
   */
  attach(pod: PodAttachment, passed?: Annotations): Promise<readonly ResultAddition[]>;
  /** Why no pod could be attached now, in words. */
  status(): string | undefined;
  /**
   * Detaches all but these: of those that a configuration of that name made, where it names a Network, else of those that joined none.
   * @returns those whose detachment failed, in words
   */
  keepOnly(
    valid: readonly { readonly containerId: string; readonly interfaceName: string }[],
    configuration?: string,
  ): Promise<string[]>;
}

/** A section refused a pod. */
export class HookError extends Error {}
