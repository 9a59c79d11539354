import type { PodAttachment } from '../attachment/pods.ts';

/** Questions about pods whose ports on the node are being made: the API server answers meanwhile, and ADD takes less time. */

type Attached = Pick<PodAttachment, 'containerId' | 'interface'>;

export interface BegunQuestions<T> {
  /** Asks. Never throws: what is wrong is told by who takes the answer. */
  begin(pod: PodAttachment): void;
  /** Of this ADD, once; undefined: nobody has asked. */
  take(pod: Attached): Promise<T> | undefined;
}

/** Answers that nobody took are of pods that were refused a port: the oldest go. */
const MOST = 1000;

const keyOf = (pod: Attached): string => `${pod.containerId}/${pod.interface}`;

export const createBegunQuestions = <T>(ask: (pod: PodAttachment) => Promise<T>, most = MOST): BegunQuestions<T> => {
  const begun = new Map<string, Promise<T>>();
  return {
    begin(pod) {
      const answer = ask(pod);
      answer.catch(() => undefined);
      begun.delete(keyOf(pod));
      begun.set(keyOf(pod), answer);
      const [oldest] = begun.keys();
      if (begun.size > most && oldest !== undefined) begun.delete(oldest);
    },
    take(pod) {
      const answer = begun.get(keyOf(pod));
      begun.delete(keyOf(pod));
      return answer;
    },
  };
};
