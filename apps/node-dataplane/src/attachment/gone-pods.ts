import { existsSync } from 'node:fs';
import type { Logger } from '@unbounded/telemetry';
import { podName } from './hook-choice.ts';
import type { PodAttachment } from './pods.ts';

/**
 * Pods whose DEL was missed: it succeeds without an agent, also while one starts, and the runtime does not repeat it. Their addresses are
 * assigned to other pods, to which the state of the former must not apply.
 */

export interface GonePodsParts {
  readonly registered: () => readonly PodAttachment[];
  /** Names of the links of the node. */
  readonly linkNames: () => Promise<ReadonlySet<string>>;
  readonly detach: (containerId: string, interfaceName: string) => Promise<void>;
  readonly logger: Logger;
  readonly exists?: (path: string) => boolean;
}

/** A runtime may have its namespaces where this container does not see them: the port of a pod that lives is there. */
export const mayLive = (
  { netns, hostVeth }: Pick<PodAttachment, 'netns' | 'hostVeth'>,
  links: ReadonlySet<string>,
  exists: (path: string) => boolean = existsSync,
): boolean => exists(netns) || (hostVeth !== undefined && links.has(hostVeth));

/** Detaches them as DEL does; never rejects. While it is at work another call does nothing. */
export const createGonePods = ({
  registered,
  linkNames,
  detach,
  logger,
  exists = existsSync,
}: GonePodsParts): (() => Promise<void>) => {
  let isAtWork = false;
  const detachGone = async (): Promise<void> => {
    const missing = registered().filter(({ netns, hostVeth }) => hostVeth !== undefined && !exists(netns));
    if (missing.length === 0) return;
    const links = await linkNames();
    const gone = missing.filter((pod) => !mayLive(pod, links, exists));
    for (const pod of gone) {
      logger.warn({ pod: podName(pod), addresses: pod.addresses }, 'the DEL of a pod was missed: it is detached');
      await detach(pod.containerId, pod.interface);
    }
  };
  return async () => {
    if (isAtWork) return;
    isAtWork = true;
    try {
      await detachGone();
    } catch (error) {
      logger.error(
        { error: (error as Error).message },
        'pods whose DEL was missed cannot be detached; they are tried again',
      );
    } finally {
      isAtWork = false;
    }
  };
};
