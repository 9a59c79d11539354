import { AddressSet, comparePrefixes, containsPrefix, type Prefix } from '@unbounded/ip';

import type { EgressNode } from '../snapshot.ts';

/**
 * Whose pods have which addresses. A kubelet can register its Node with any pod CIDRs: what an older Node has stays its own, since the time
 * of creation is the API server's. Nodes of the same second share what both state.
 */

interface Stated {
  readonly node: string;
  readonly createdMs: number;
  readonly prefix: Prefix;
}

/** Blocks that are inside of others, each with all of these: prefixes overlap by nesting alone. In order of size from the widest. */
const nestedIn = function* (stated: readonly Stated[]): Generator<readonly [outer: Stated, inner: Stated]> {
  const around: Stated[] = [];
  for (const inner of stated.toSorted((a, b) => comparePrefixes(a.prefix, b.prefix))) {
    while (around.length > 0 && !containsPrefix(around.at(-1)!.prefix, inner.prefix)) around.pop();
    for (const outer of around) if (outer.node !== inner.node) yield [outer, inner];
    around.push(inner);
  }
};

/** By node. Nodes without blocks are not in it. */
export const settledBlocks = (nodes: readonly EgressNode[]): ReadonlyMap<string, AddressSet> => {
  const stated = nodes.flatMap(({ name, createdMs = 0, podBlocks }) =>
    podBlocks.map((prefix): Stated => ({ node: name, createdMs, prefix })),
  );
  const lost = new Map<string, Prefix[]>();
  for (const [outer, inner] of nestedIn(stated)) {
    if (outer.createdMs === inner.createdMs) continue;
    const loser = outer.createdMs > inner.createdMs ? outer.node : inner.node;
    // All that both state is the inner one.
    lost.set(loser, [...(lost.get(loser) ?? []), inner.prefix]);
  }
  const sets = Map.groupBy(stated, ({ node }) => node);
  return new Map(
    [...sets].map(([node, own]) => {
      const all = AddressSet.of(own.map(({ prefix }) => prefix));
      const others = lost.get(node);
      return [node, others ? all.subtract(AddressSet.of(others)) : all] as const;
    }),
  );
};
