import { KEY_ANNOTATIONS } from '@unbounded/crds';
import { ApiError } from '@unbounded/kube';
import type { Problem } from '@unbounded/topology';

/**
 * Annotations of our Node, in one patch. The chart's policy has a list of them, and one that is not on it (of an agent that is newer
 * than the chart) makes the API server refuse the whole patch: then each is tried by itself, so that the others are written.
 */
export interface AnnotationWrites {
  /** Writes what differs from what stands. @returns what is refused @throws Error when a patch fails otherwise */
  write(annotations: { readonly wanted: Annotations; readonly present: Annotations }, patch: Patch): Promise<Problem[]>;
}

/** null: not there. */
type Annotations = Readonly<Record<string, string | null>>;
type Patch = (annotations: Annotations) => Promise<unknown>;

/** What was refused is tried again after this time: the chart may have been upgraded meanwhile. */
const TRY_AGAIN_MS = 60_000;

interface Refusal {
  /** What was tried: anything else is tried at once. */
  readonly text: string;
  readonly atMs: number;
  readonly problem: Problem;
}

/** Keys change together, or not at all: half of an exchange of keys would cut links. */
const groupsOf = (wanted: Annotations): readonly (readonly string[])[] => {
  const names = Object.keys(wanted);
  const keys = names.filter((name) => KEY_ANNOTATIONS.includes(name));
  const others = names.filter((name) => !KEY_ANNOTATIONS.includes(name)).map((name) => [name]);
  return keys.length === 0 ? others : [keys, ...others];
};

const pick = (annotations: Annotations, names: readonly string[]): Annotations =>
  Object.fromEntries(names.map((name) => [name, annotations[name] ?? null]));

/** By a policy, or by a webhook, which has a status of its own choice. */
const REFUSED: ReadonlySet<number> = new Set([400, 403, 422]);

const refusedProblem = (names: readonly string[], error: Error): Problem => ({
  reason: 'AnnotationRefused',
  message: `the API server refuses the annotation ${names.join(', ')} of this Node: ${error.message}: upgrade the chart before the agents; everything else is reported`,
});

const whyRefused = (patched: Promise<unknown>): Promise<Error | undefined> =>
  patched.then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof ApiError && REFUSED.has(error.status)) return error;
      throw error;
    },
  );

/** @param elapsed a clock that only goes forward, milliseconds */
export const createAnnotationWrites = (elapsed: () => number = () => performance.now()): AnnotationWrites => {
  /** By the first name of its group. */
  const refusals = new Map<string, Refusal>();

  return {
    async write({ wanted, present }, patch) {
      const groups = groupsOf(wanted).filter((group) => group.some((name) => (present[name] ?? null) !== wanted[name]));
      const firsts = new Set(groups.map(([first]) => first!));
      for (const name of refusals.keys()) if (!firsts.has(name)) refusals.delete(name);
      const due = groups.filter((group) => {
        const refusal = refusals.get(group[0]!);
        return refusal?.text !== JSON.stringify(pick(wanted, group)) || elapsed() - refusal.atMs >= TRY_AGAIN_MS;
      });
      if (due.length > 0) {
        for (const [first] of due) refusals.delete(first!);
        const error = await whyRefused(patch(pick(wanted, due.flat())));
        for (const group of error ? due : []) {
          const part = pick(wanted, group);
          const why = due.length === 1 ? error : await whyRefused(patch(part));
          const refusal = { text: JSON.stringify(part), atMs: elapsed() };
          if (why) refusals.set(group[0]!, { ...refusal, problem: refusedProblem(group, why) });
        }
      }
      return [...refusals.values()].map(({ problem }) => problem);
    },
  };
};
