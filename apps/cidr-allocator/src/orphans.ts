import type { GatewayPool, SiteNodeSlice } from '@unbounded/crds';
import { parsePrefix, type Prefix } from '@unbounded/ip';
import { type NodeFacts, type NodeRecord, recordsByNode } from '@unbounded/membership';

interface Listing {
  readonly nodes: readonly NodeFacts[];
  readonly slices?: readonly SiteNodeSlice[];
  readonly pools?: readonly GatewayPool[];
}

/**
 * What slices and pool status list for a node that does not state it now: its Node is gone, or another one of its name, or lost it. It is
 * all that a restarted allocator knows of what was released a moment ago.
 * @param listed what counts of a record, canonical
 * @param stated the same of a Node, canonical
 */
export const orphansOf = (
  { nodes, slices = [], pools = [] }: Listing,
  listed: (record: NodeRecord) => ReadonlySet<string>,
  stated: (node: NodeFacts) => readonly string[],
): readonly (readonly [node: string, prefix: Prefix])[] => {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  return [...recordsByNode(slices, pools)].flatMap(([name, record]) => {
    const node = byName.get(name);
    const present = new Set(node && stated(node));
    return [...listed(record)].filter((text) => !present.has(text)).map((text) => [name, parsePrefix(text)] as const);
  });
};
