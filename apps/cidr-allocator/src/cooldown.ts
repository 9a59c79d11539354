import { formatPrefix, parsePrefix, type Prefix } from '@unbounded/ip';
import type { Node } from '@unbounded/kube';
import { nodeFacts } from '@unbounded/membership';

/**
 * Blocks of Nodes that were deleted a moment ago: peers may still route them to the old node, and connections of its pods are
 * still retried. Every replica remembers them, the leader or not.
 */
export interface Cooldown {
  released(prefixes: readonly Prefix[]): void;
  /** The blocks that should not be given yet. */
  cooling(): readonly Prefix[];
}

/** @param now monotonic, milliseconds */
export const createCooldown = (cooldownMs: number, now: () => number = () => performance.now()): Cooldown => {
  let entries: readonly { readonly prefix: Prefix; readonly untilMs: number }[] = [];
  /** Nobody asks a replica that does not lead: it forgets as it learns. */
  const current = () => entries.filter(({ untilMs }) => untilMs > now());
  return {
    released: (prefixes) => {
      entries = [...current(), ...prefixes.map((prefix) => ({ prefix, untilMs: now() + cooldownMs }))];
    },
    cooling: () => {
      entries = current();
      return entries.map(({ prefix }) => prefix);
    },
  };
};

const locatorsOf = (node: Node): readonly Prefix[] => {
  const { l2Locator } = nodeFacts(node);
  return l2Locator === undefined ? [] : [parsePrefix(l2Locator)];
};

/**
 * Blocks and locators that a Node had and has no more.
 * @param now the Node of its name; another one where the deletion was not seen, after a new listing; undefined: there is none
 */
export const releasedBy = (before: Node, now: Node | undefined): readonly Prefix[] => {
  // One and the same Node gets the locator again that somebody took away from it.
  const isSame = now !== undefined && now.metadata.uid === before.metadata.uid;
  const locators = isSame ? [] : locatorsOf(before);
  const had = [...nodeFacts(before).podPrefixes, ...locators];
  if (now === undefined || had.length === 0) return had;
  const has = new Set([...nodeFacts(now).podPrefixes, ...locatorsOf(now)].map(formatPrefix));
  return had.filter((prefix) => !has.has(formatPrefix(prefix)));
};
