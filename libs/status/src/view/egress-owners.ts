import { type Found, listed } from './found.ts';
import { freshReport, type ViewInputs } from './inputs.ts';

/** Which nodes report that they answer for an egress address, and what is wrong where more than one does. */

/** By egress address. */
export type Owners = ReadonlyMap<string, readonly string[]>;

export const ownersOf = (inputs: ViewInputs): Owners => {
  const owners = new Map<string, string[]>();
  for (const { name } of inputs.nodes)
    for (const address of new Set(freshReport(inputs, name)?.egress?.heldAddresses)) {
      const known = owners.get(address);
      if (known) known.push(name);
      else owners.set(address, [name]);
    }
  return owners;
};

interface Conflict {
  readonly address: string;
  readonly nodes: readonly string[];
}

const conflictsOf = (owners: Owners): Conflict[] =>
  [...owners]
    .flatMap(([address, nodes]) => (nodes.length < 2 ? [] : [{ address, nodes }]))
    .sort((a, b) => a.address.localeCompare(b.address));

const addressesOf = (conflicts: readonly Conflict[]): string[] => conflicts.map(({ address }) => address);

/** By node, its conflicts. */
const byClaimant = (conflicts: readonly Conflict[]): ReadonlyMap<string, readonly Conflict[]> => {
  const all = new Map<string, Conflict[]>();
  for (const conflict of conflicts)
    for (const node of conflict.nodes) {
      const known = all.get(node);
      if (known) known.push(conflict);
      else all.set(node, [conflict]);
    }
  return all;
};

const CONSEQUENCE =
  'connections with such an address may be reset; the EgressNodeSlices say which node each address was given to';

/** A node that claims what several others claim as well: no single other one can bring that upon it. */
const findClaimant = (node: string, conflicts: readonly Conflict[], others: readonly string[]): Found => ({
  ...{ severity: 'critical', reason: 'EgressAddressConflict', kind: 'Node', name: node, sites: [] },
  message: `node ${node} reports that it answers for egress addresses ${listed(addressesOf(conflicts))}, for which ${listed(others)} report the same`,
  consequence: CONSEQUENCE,
});

/** Of two nodes that are at odds with each other alone nobody can say here which is right: it is no problem of either. */
const findPair = (nodes: readonly string[], conflicts: readonly Conflict[]): Found => ({
  ...{ severity: 'critical', reason: 'EgressAddressConflict', kind: 'EgressAddress', sites: [] },
  name: conflicts[0]!.address,
  message: `nodes ${listed(nodes)} both report that they answer for egress addresses ${listed(addressesOf(conflicts))}`,
  consequence: CONSEQUENCE,
  claimants: [...nodes],
});

/**
 * A report may claim any address. So a node is blamed that is at odds with two others at least: who claims the addresses of many is one
 * problem of its own, and none of theirs. The rest are pairs, of which a node is in one at most.
 */
export const findOwners = (owners: Owners): Found[] => {
  const conflicts = conflictsOf(owners);
  const blamed = new Map(
    [...byClaimant(conflicts)].flatMap(([node, own]): [string, Found][] => {
      const others = new Set(own.flatMap(({ nodes }) => nodes).sort());
      others.delete(node);
      return others.size < 2 ? [] : [[node, findClaimant(node, own, [...others])]];
    }),
  );
  const unexplained = conflicts.filter(({ nodes }) => !nodes.some((node) => blamed.has(node)));
  const pairs = Map.groupBy(unexplained, ({ nodes }) => nodes.join(' '));
  return [...blamed.values(), ...[...pairs.values()].map((ofPair) => findPair(ofPair[0]!.nodes, ofPair))];
};
