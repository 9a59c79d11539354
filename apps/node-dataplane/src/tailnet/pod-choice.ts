import { setTimeout as delay } from 'node:timers/promises';
import { ApiError, isNotFound, TransportError } from '@unbounded/kube';
import type { Annotations } from '../attachment/hook.port.ts';
import type { PodAttachment } from '../attachment/pods.ts';
import { askedBy, type Joining, mayJoin } from './joining.ts';

/** Whether pods of the node may join, by their annotations. */

export interface PodChoice {
  /**
   * Never rejects. While the API server does not answer, a pod that is not known may join where there is a tailnet: else one that does would
   * send to the tailnet by another interface, and the tailnet agent knows its devices without asking anybody.
   */
  mayJoin(pod: PodAttachment, annotations: () => Promise<Annotations>): Promise<boolean>;
  /** By what is known, without a question. */
  mayBe(pod: PodAttachment): boolean;
  /** Its annotation has been read. */
  isKnown(pod: PodAttachment): boolean;
  /** Forgets other pods. */
  keepOnly(uids: ReadonlySet<string>): void;
}

/** Longer than an API server takes that answers at all. */
const ANSWER_WITHIN_MS = 5000;

/** There is no such pod at the API server (a static one has another UID there), or no API server at all. */
const hasNoAnnotation = (error: unknown): boolean =>
  isNotFound(error) || !(error instanceof ApiError || error instanceof TransportError);

/** Undefined: not in time. */
const within = async <T>(work: Promise<T>, withinMs: number): Promise<T | undefined> => {
  const over = new AbortController();
  try {
    return await Promise.race([work, delay(withinMs, undefined, { signal: over.signal })]);
  } finally {
    over.abort();
  }
};

export const createPodChoice = (joining: () => Joining, answerWithinMs = ANSWER_WITHIN_MS): PodChoice => {
  /** By UID: annotations count as they are when the pod starts. */
  const asked = new Map<string, boolean | undefined>();
  const mayBe = ({ uid }: PodAttachment): boolean =>
    asked.has(uid) ? mayJoin(asked.get(uid), joining()) : joining() !== 'Off';
  return {
    async mayJoin(pod, annotations) {
      try {
        const found = await within(annotations(), answerWithinMs);
        if (found) asked.set(pod.uid, askedBy(found));
      } catch (error) {
        if (hasNoAnnotation(error)) asked.set(pod.uid, undefined);
      }
      return mayBe(pod);
    },
    mayBe,
    isKnown: ({ uid }) => asked.has(uid),
    keepOnly(uids) {
      for (const uid of asked.keys()) if (!uids.has(uid)) asked.delete(uid);
    },
  };
};
