import type { PodAttachment } from '../attachment/pods.ts';

/** Questions about pods whose ports on the node are being made: the API server answers meanwhile, and ADD takes less time. */

type Attached = Pick<PodAttachment, 'containerId' | 'interface'>;

export interface BegunQuestions<T> {
  /** Asks. Never throws: what is wrong is told by who takes the answer. */
  begin(pod: PodAttachment): void;
  /** Of this ADD, once; undefined: nobody has asked, or so long ago that another answer may be right by now. */
  take(pod: Attached): Promise<T> | undefined;
}

/** Answers that nobody took are of pods that were refused a port: the oldest go. */
const MOST = 1000;

/** A port is made in milliseconds; other sections may take their time before the answer is taken. */
const COUNTS_MS = 1000;

const keyOf = (pod: Attached): string => `${pod.containerId}/${pod.interface}`;

export const createBegunQuestions = <T>(
  ask: (pod: PodAttachment) => Promise<T>,
  { most = MOST, now = () => performance.now() }: { readonly most?: number; readonly now?: () => number } = {},
): BegunQuestions<T> => {
  const begun = new Map<string, { readonly answer: Promise<T>; readonly atMs: number }>();
  return {
    begin(pod) {
      const answer = ask(pod);
      answer.catch(() => undefined);
      begun.delete(keyOf(pod));
      begun.set(keyOf(pod), { answer, atMs: now() });
      const [oldest] = begun.keys();
      if (begun.size > most && oldest !== undefined) begun.delete(oldest);
    },
    take(pod) {
      const question = begun.get(keyOf(pod));
      begun.delete(keyOf(pod));
      return question && now() - question.atMs < COUNTS_MS ? question.answer : undefined;
    },
  };
};
