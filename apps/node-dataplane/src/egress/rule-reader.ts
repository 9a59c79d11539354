import type { KubeObject, ResourceClient } from '@unbounded/kube';

/**
 * Rules as the API server has them at this moment. What it sends for a question are their names and generations, and the rules themselves only
 * when any of them is another: of many rules that is most of what the question costs, and each pod of the namespace asks it.
 */
export type ReadRules<T> = (namespace?: string) => Promise<readonly T[]>;

type Client<T extends KubeObject> = Pick<ResourceClient<T>, 'listAll' | 'listMetadata'>;

interface Kept<T> {
  readonly rules: readonly T[];
  readonly atMs: number;
}

/** Longer ones are read anew: an API server that was restored from a backup may give a generation twice. */
const COUNTS_MS = 60_000;
/** Objects of up to 32 rules each, of all namespaces together. */
const MOST_KEPT = 250;

/** A generation is one text of `spec`: status and metadata have none. */
const isUnchanged = (kept: readonly KubeObject[], current: readonly Pick<KubeObject, 'metadata'>[]): boolean => {
  const generations = new Map(kept.map(({ metadata: { uid, generation } }) => [uid, generation]));
  return (
    kept.length === current.length &&
    current.every(
      ({ metadata: { uid, generation } }) => generation !== undefined && generations.get(uid) === generation,
    )
  );
};

/** Status and managed fields are twice as long as the rules. */
const withoutStatus = <T extends KubeObject>(rule: T): T => {
  const { name, namespace, uid, generation } = rule.metadata;
  return { ...rule, metadata: { name, namespace, uid, generation }, status: undefined };
};

/** What it returns rejects with ApiError, TransportError: it is not known then. */
export const createRuleReader = <T extends KubeObject>(
  client: Client<T>,
  { most = MOST_KEPT, now = () => performance.now() }: { readonly most?: number; readonly now?: () => number } = {},
): ReadRules<T> => {
  const kept = new Map<string, Kept<T>>();
  const keep = (key: string, rules: readonly T[]): void => {
    kept.delete(key);
    if (rules.length === 0 || rules.length > most) return;
    kept.set(key, { rules, atMs: now() });
    const size = (): number => [...kept.values()].reduce((sum, one) => sum + one.rules.length, 0);
    for (const oldest of kept.keys()) if (size() > most) kept.delete(oldest);
  };
  return async (namespace) => {
    const key = namespace ?? '';
    const options = namespace === undefined ? {} : { namespace };
    const last = kept.get(key);
    if (last && now() - last.atMs < COUNTS_MS && isUnchanged(last.rules, await client.listMetadata(options)))
      return last.rules;
    const rules = (await client.listAll(options)).map(withoutStatus);
    keep(key, rules);
    return rules;
  };
};
