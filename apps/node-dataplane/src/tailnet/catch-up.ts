import type { Logger } from '@unbounded/telemetry';
import { podName } from '../attachment/hook-choice.ts';
import type { Annotations } from '../attachment/hook.port.ts';
import type { PodAttachment } from '../attachment/pods.ts';
import type { PodChoice } from './pod-choice.ts';
import { containerOf, isRefusal, NOT_FOUND, requestOf, type TailnetAgent } from './tailnet-agent.ts';

/**
 * Pods that run and may join, and of which the tailnet agent does not know: they started without this section, or before a rule took them in.
 * Each gets its device as soon as it can be had.
 */

export interface CatchUp {
  /** Begins with those of the pods that are not under way. */
  look(pods: readonly PodAttachment[]): void;
  /** The settings are others: pods that were to be no devices are asked about again. */
  reconsider(): void;
  /** Nothing more is asked for the container. */
  leave(containerId: string): void;
  stop(): void;
}

export interface CatchUpParts {
  readonly agent: Pick<TailnetAgent, 'add' | 'check'>;
  readonly choice: Pick<PodChoice, 'mayJoin' | 'mayBe' | 'isKnown'>;
  readonly annotationsOf: (pod: PodAttachment) => Promise<Annotations>;
  readonly logger: Logger;
}

const AT_ONCE = 4;
const CHECK_WITHIN_MS = 2000;
/** The network of the pod stands by then; a device that takes longer comes up by itself. */
const ADD_WITHIN_MS = 30_000;
/** The namespace may have other labels by then. Each question costs the API server two requests. */
const REFUSED_FOR_MS = 600_000;
/** Then the same reason is told again. */
const TOLD_FOR_MS = 600_000;

/** gRPC adds how long it took, and where it looked. */
const reasonOf = ({ message }: Error): string => message.replace(/Deadline exceeded after.*$/s, 'no answer in time');

/** Logs a reason when it comes up, not as long as it lasts. */
const createReasonLog = (logger: Logger) => {
  const seen = new Map<string, number>();
  return (pod: PodAttachment, error: Error): void => {
    const [reason, nowMs] = [reasonOf(error), performance.now()];
    for (const [other, atMs] of seen) if (nowMs - atMs > TOLD_FOR_MS) seen.delete(other);
    if (!seen.has(reason)) logger.warn({ pod: podName(pod), reason }, 'a running pod gets no device for now');
    seen.set(reason, nowMs);
  };
};

export const createCatchUp = ({ agent, choice, annotationsOf, logger }: CatchUpParts): CatchUp => {
  const waiting = new Map<string, PodAttachment>();
  const underWay = new Map<string, AbortController>();
  /** Until when a container is not asked about: its pod is to be no device. */
  const refused = new Map<string, number>();
  const logReason = createReasonLog(logger);

  const add = async (pod: PodAttachment, signal: AbortSignal): Promise<void> => {
    if (!choice.isKnown(pod)) await choice.mayJoin(pod, () => annotationsOf(pod));
    if (!choice.isKnown(pod) || !choice.mayBe(pod) || signal.aborted) return;
    const { message } = await agent.check(containerOf(pod), { timeoutMs: CHECK_WITHIN_MS, signal });
    if (message !== NOT_FOUND) return;
    await agent.add(requestOf(pod), { timeoutMs: ADD_WITHIN_MS, signal });
    logger.info({ pod: podName(pod) }, 'a running pod gets its device');
  };
  const tryToAdd = async (pod: PodAttachment, signal: AbortSignal): Promise<void> => {
    try {
      await add(pod, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (isRefusal(error)) refused.set(pod.containerId, performance.now() + REFUSED_FOR_MS);
      logReason(pod, error as Error);
    }
  };
  const next = (): void => {
    for (const [containerId, pod] of waiting) {
      if (underWay.size >= AT_ONCE) return;
      waiting.delete(containerId);
      const ending = new AbortController();
      underWay.set(containerId, ending);
      void tryToAdd(pod, ending.signal).finally(() => {
        underWay.delete(containerId);
        next();
      });
    }
  };
  const leave = (containerId: string): void => {
    waiting.delete(containerId);
    refused.delete(containerId);
    underWay.get(containerId)?.abort();
  };
  return {
    look(pods) {
      for (const pod of pods) {
        const isRefused = performance.now() < (refused.get(pod.containerId) ?? 0);
        if (!isRefused && !underWay.has(pod.containerId)) waiting.set(pod.containerId, pod);
      }
      next();
    },
    reconsider: () => refused.clear(),
    leave,
    stop() {
      waiting.clear();
      for (const containerId of underWay.keys()) leave(containerId);
    },
  };
};
