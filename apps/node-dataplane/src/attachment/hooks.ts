import type { Logger } from '@unbounded/telemetry';
import { HookError, type PodNetwork } from './pod-network.ts';
import type { PodAttachment } from './pods.ts';

/** What sections do when a pod is attached, detached or checked, besides what every pod needs. */

export interface AttachmentHook {
  readonly section: string;
  /** Hooks run one after the other, lower ones first; on DEL in the reverse order. */
  readonly order: number;
  /** Then the hook has failed for this pod. Others wait for it no longer, and no other pod does at all. */
  readonly timeoutMs: number;
  /** Whether the hook has to do with the pod; not set: with every pod. */
  concerns?(pod: PodAttachment): boolean;
  /** ADD: an error refuses the pod for now; the runtime tries again. */
  add?(pod: PodAttachment, signal: AbortSignal): Promise<void>;
  /** DEL, which may come twice, or without ADD: an error is logged, and the pod goes. */
  remove?(pod: PodAttachment, signal: AbortSignal): Promise<void>;
  /** CHECK: what is wrong, in words. */
  check?(pod: PodAttachment, signal: AbortSignal): Promise<string | undefined>;
}

export interface HookedPods extends PodNetwork {
  /** @returns takes the hook away again */
  addHook(hook: AttachmentHook): () => void;
}

/** Also of a hook that does not listen to the signal. */
const withinTime = async <T>(
  { section, timeoutMs }: AttachmentHook,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const late = Promise.withResolvers<never>();
  const abort = new AbortController();
  const timer = setTimeout(() => {
    const error = new Error(`no answer within ${timeoutMs} ms`);
    abort.abort(error);
    late.reject(error);
  }, timeoutMs);
  try {
    return await Promise.race([run(abort.signal), late.promise]);
  } catch (error) {
    throw new HookError(`section ${section}: ${(error as Error).message}`);
  } finally {
    clearTimeout(timer);
  }
};

/** @param registered the pods that are attached, for DEL and CHECK */
export const hookedPods = (
  base: PodNetwork,
  { registered, logger }: { readonly registered: () => readonly PodAttachment[]; readonly logger: Logger },
): HookedPods => {
  let hooks: readonly AttachmentHook[] = [];
  const of = (pod: PodAttachment): readonly AttachmentHook[] => hooks.filter((hook) => hook.concerns?.(pod) ?? true);
  const find = (containerId: string, interfaceName: string): PodAttachment | undefined =>
    registered().find((pod) => pod.containerId === containerId && pod.interface === interfaceName);
  return {
    addHook(hook) {
      hooks = [...hooks, hook].sort((a, b) => a.order - b.order);
      return () => {
        hooks = hooks.filter((one) => one !== hook);
      };
    },
    async attach(pod) {
      await base.attach(pod);
      for (const hook of of(pod)) await withinTime(hook, async (signal) => hook.add?.(pod, signal));
    },
    async detach(containerId, interfaceName) {
      const pod = find(containerId, interfaceName);
      for (const hook of pod ? of(pod).toReversed() : [])
        await withinTime(hook, async (signal) => hook.remove?.(pod!, signal)).catch((error: Error) =>
          logger.error({ pod: `${pod!.namespace}/${pod!.name}`, error: error.message }, 'cannot detach a pod entirely'),
        );
      await base.detach(containerId, interfaceName);
    },
    async check(containerId, interfaceName) {
      const wrong = await base.check(containerId, interfaceName);
      const pod = find(containerId, interfaceName);
      if (wrong !== undefined || !pod) return wrong;
      for (const hook of of(pod)) {
        const found = await withinTime(hook, async (signal) => hook.check?.(pod, signal)).catch(
          ({ message }: Error) => message,
        );
        if (found !== undefined) return found;
      }
      return undefined;
    },
  };
};
