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

const showsLife = (
  { netns, hostVeth }: PodAttachment,
  links: ReadonlySet<string>,
  exists: (path: string) => boolean,
): boolean => exists(netns) || (hostVeth !== undefined && links.has(hostVeth));

/** One that was attached by the name of a Network has no port here that would show whether it lives: it goes with its container. */
const namedBeside = (shown: readonly PodAttachment[], pods: readonly PodAttachment[]): PodAttachment[] => {
  const containers = new Set(shown.map(({ containerId }) => containerId));
  return pods.filter(({ hostVeth, containerId }) => hostVeth === undefined && containers.has(containerId));
};

/**
 * What an agent that starts goes on with. A runtime may have its namespaces where this container does not see them: the port of a pod that
 * lives is there.
 */
export const livingOf = (
  pods: readonly PodAttachment[],
  links: ReadonlySet<string>,
  exists: (path: string) => boolean = existsSync,
): ReadonlySet<PodAttachment> => {
  const shown = pods.filter((pod) => showsLife(pod, links, exists));
  return new Set([...shown, ...namedBeside(shown, pods)]);
};

/** Of these pods without a namespace those that are gone: what has no port before what shows it, so that it is found again if it cannot be detached. */
const goneOf = (missing: readonly PodAttachment[], links: ReadonlySet<string>): PodAttachment[] => {
  const shown = missing.filter(({ hostVeth }) => hostVeth !== undefined && !links.has(hostVeth));
  return [...namedBeside(shown, missing), ...shown];
};

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
    const missing = registered().filter(({ netns }) => !exists(netns));
    if (missing.every(({ hostVeth }) => hostVeth === undefined)) return;
    for (const pod of goneOf(missing, await linkNames())) {
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
