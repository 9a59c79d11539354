import type { PodAttachment } from '../attachment/pods.ts';
import type { AskSelection } from './selection.ts';

/**
 * What is known of each pod of the node: whether a rule selects it. Known is what a slice lists, and what the API server answered. A pod of
 * which neither is known reaches the cluster alone.
 */
export interface PodDecisions {
  selectionOf(uid: string): 'none' | 'selected' | 'unknown';
  /** The slices list these; a pod that they list no more is asked about again before it leaves as its node. */
  listed(uids: ReadonlySet<string>): void;
  /** Asks about one. @throws Error: it is not known now */
  decide(pod: PodAttachment): Promise<'none' | 'selected'>;
  /**
   * Asks about those of which it is not known; while that goes on it does nothing. Never rejects.
   * @returns whether any of them turned out to be free
   */
  decideOpen(pods: readonly PodAttachment[]): Promise<boolean>;
  /** Those that are gone are forgotten. */
  keepOnly(uids: ReadonlySet<string>): void;
  /** Pods of which no rule selects any, to be kept. */
  free(): readonly string[];
}

export interface PodDecisionsParts {
  /** Undefined: there is no API server, and slices alone decide. */
  readonly ask: AskSelection | undefined;
  readonly labelsOf: (pod: PodAttachment) => Promise<Readonly<Record<string, string>>>;
  /** UIDs of pods that no rule selected when it was last known. */
  readonly free: Iterable<string>;
}

export const createPodDecisions = ({ ask, labelsOf, free }: PodDecisionsParts): PodDecisions => {
  const known = new Map<string, 'none' | 'selected'>([...free].map((uid) => [uid, 'none']));
  let inSlices: ReadonlySet<string> = new Set();
  let isAsking = false;
  const decide = async (pod: PodAttachment): Promise<'none' | 'selected'> => {
    const { namespace, name, uid } = pod;
    const selection = ask ? await ask({ namespace, name, uid, labels: () => labelsOf(pod) }) : 'none';
    known.set(uid, selection);
    return selection;
  };
  return {
    selectionOf: (uid) => (inSlices.has(uid) ? 'selected' : (known.get(uid) ?? 'unknown')),
    listed(uids) {
      for (const uid of uids) known.set(uid, 'selected');
      inSlices = uids;
    },
    decide,
    async decideOpen(pods) {
      if (isAsking) return false;
      isAsking = true;
      const open = pods.filter(({ uid }) => !inSlices.has(uid) && known.get(uid) !== 'none');
      const answers = await Promise.allSettled(open.map(decide)).finally(() => (isAsking = false));
      return answers.some((answer) => answer.status === 'fulfilled' && answer.value === 'none');
    },
    keepOnly(uids) {
      for (const uid of known.keys()) if (!uids.has(uid)) known.delete(uid);
    },
    free: () =>
      [...known]
        .filter(([, selection]) => selection === 'none')
        .map(([uid]) => uid)
        .sort(),
  };
};
