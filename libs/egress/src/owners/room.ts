import { familyOf } from '../addresses/rule-address.ts';
import type { GrantBook } from './grants.ts';

/**
 * Addresses of a family that a node has at most. Its kernel keeps 1,024 of each alive at a time, and lets none live if there are more;
 * the rest is for those that it was to release and has not yet.
 */
export const MOST_OF_NODE = 1000;

/** Which nodes have room for one address more, while the addresses of a plan are given one by one. */
export interface Room {
  /** Whether the node can have the address; one that it has it keeps, within the number. */
  has(node: string, address: string): boolean;
  /** The address is decided: these nodes have it, are to release it, or will get it. */
  take(address: string, nodes: Iterable<string>): void;
}

export const createRoom = ({ grants }: Pick<GrantBook, 'grants'>): Room => {
  const keyOf = (node: string, address: string): string => `${node} ${familyOf(address)}`;
  /** Grants of addresses that are not decided yet. */
  const undecided = new Map<string, number>();
  const decided = new Map<string, number>();
  const add = (counts: Map<string, number>, key: string, number: number): void =>
    void counts.set(key, (counts.get(key) ?? 0) + number);
  const nodesOf = (address: string): ReadonlySet<string> =>
    new Set((grants.get(address) ?? []).map(({ node }) => node));
  for (const address of grants.keys()) {
    for (const node of nodesOf(address)) add(undecided, keyOf(node, address), 1);
  }
  return {
    has: (node, address) => {
      const key = keyOf(node, address);
      const others = nodesOf(address).has(node) ? 0 : (undecided.get(key) ?? 0);
      return (decided.get(key) ?? 0) + others < MOST_OF_NODE;
    },
    take: (address, nodes) => {
      for (const node of nodesOf(address)) add(undecided, keyOf(node, address), -1);
      for (const node of new Set(nodes)) add(decided, keyOf(node, address), 1);
    },
  };
};
