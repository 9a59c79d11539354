import type { PodAttachment } from '../attachment/pods.ts';
import type { AskSelection } from './selection.ts';

/**
 * What is known of each pod of the node: whether a rule selects it. Known is what a slice lists, and what the API server answered. A pod of
 * which neither is known reaches the cluster alone.
 */
export interface PodDecisions {
  selectionOf(uid: string): 'none' | 'selected' | 'unknown';
  /** Whether the slices list it: nobody need be asked, since a rule selects it until they list it no more. */
  isListed(uid: string): boolean;
  /** The slices list these; a pod that they list no more is asked about again before it leaves as its node. */
  listed(uids: ReadonlySet<string>): void;
  /** Asks about one, and remembers nothing. @throws Error: it is not known now */
  ask(pod: PodAttachment): Promise<'none' | 'selected'>;
  /**
   * Remembers the answer. Of a pod that the slices list there is no question: it is known to be selected.
   * @param answer not set: it is asked for
   * @throws Error: it is not known now
   */
  decide(pod: PodAttachment, answer?: Promise<'none' | 'selected'>): Promise<'none' | 'selected'>;
  /**
   * Asks about those of which it is not known; while that goes on it does nothing. One that a rule selects and that no slice lists yet is
   * asked about every second at most. Never rejects.
   * @returns whether any of them turned out to be free
   */
  decideOpen(pods: readonly PodAttachment[]): Promise<boolean>;
  /** Those that are gone are forgotten. */
  keepOnly(uids: ReadonlySet<string>): void;
  /** Pods of which no rule selects any, to be kept. */
  free(): readonly string[];
}

/** Between two questions about a pod that was selected: each of them is a list of rules. */
const SELECTED_MS = 1000;

interface Known {
  readonly selection: 'none' | 'selected';
  /** Not set: nobody was asked; a pod that the slices list no more is asked about at once. */
  readonly askedMs?: number;
}
const NONE: Known = { selection: 'none' };
const LISTED: Known = { selection: 'selected' };

export interface PodDecisionsParts {
  /** Undefined: there is no API server, and slices alone decide. */
  readonly ask: AskSelection | undefined;
  readonly labelsOf: (pod: PodAttachment) => Promise<Readonly<Record<string, string>>>;
  /** UIDs of pods that no rule selected when it was last known. */
  readonly free: Iterable<string>;
  /** Milliseconds of a clock that never steps. */
  readonly now?: () => number;
}

export const createPodDecisions = ({
  ask: askSelection,
  labelsOf,
  free,
  now = () => performance.now(),
}: PodDecisionsParts): PodDecisions => {
  const known = new Map<string, Known>([...free].map((uid) => [uid, NONE]));
  let inSlices: ReadonlySet<string> = new Set();
  let isAsking = false;
  const ask = async (pod: PodAttachment): Promise<'none' | 'selected'> => {
    const { namespace, name, uid } = pod;
    return askSelection ? askSelection({ namespace, name, uid, labels: () => labelsOf(pod) }) : 'none';
  };
  const decide = async (pod: PodAttachment, answer?: Promise<'none' | 'selected'>): Promise<'none' | 'selected'> => {
    if (inSlices.has(pod.uid)) return 'selected';
    const selection = await (answer ?? ask(pod));
    if (selection === 'none' && inSlices.has(pod.uid)) return selection; // the slices are newer
    known.set(pod.uid, selection === 'none' ? NONE : { selection, askedMs: now() });
    return selection;
  };
  const isOpen = ({ uid }: PodAttachment): boolean => {
    const { selection, askedMs = -Infinity } = known.get(uid) ?? {};
    return !inSlices.has(uid) && selection !== 'none' && now() - askedMs >= SELECTED_MS;
  };
  return {
    isListed: (uid) => inSlices.has(uid),
    selectionOf: (uid) => (inSlices.has(uid) ? 'selected' : (known.get(uid)?.selection ?? 'unknown')),
    listed(uids) {
      for (const uid of uids) known.set(uid, LISTED);
      inSlices = uids;
    },
    ask,
    decide,
    async decideOpen(pods) {
      if (isAsking) return false;
      isAsking = true;
      const open = pods.filter(isOpen);
      const answers = await Promise.allSettled(open.map((pod) => decide(pod))).finally(() => (isAsking = false));
      return answers.some((answer) => answer.status === 'fulfilled' && answer.value === 'none');
    },
    keepOnly(uids) {
      for (const uid of known.keys()) if (!uids.has(uid)) known.delete(uid);
    },
    free: () =>
      [...known]
        .filter(([, { selection }]) => selection === 'none')
        .map(([uid]) => uid)
        .sort(),
  };
};
