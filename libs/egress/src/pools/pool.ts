import type { EgressIPPool, LabelSelector } from '@unbounded/crds';
import {
  type Address,
  AddressSet,
  type Prefix,
  tryParseAddress,
  tryParsePrefix,
  hostPrefix,
  formatPrefix,
} from '@unbounded/ip';

import { compareTexts, firstDifference } from '../order.ts';
import type { EgressProblem } from '../problem.ts';
import type { ClusterPrefixes } from '../snapshot.ts';

/** An EgressIPPool, read. */
export interface Pool {
  readonly name: string;
  /** Blocks and ranges, less addresses inside of the cluster: what is allocated there stays. */
  readonly given: AddressSet;
  /** That, less what belongs to an older pool; exclusions included. */
  readonly held: AddressSet;
  /** What can be allocated. */
  readonly allocatable: AddressSet;
  readonly nodeSelector: LabelSelector | undefined;
  readonly namespaceSelector: LabelSelector | undefined;
  readonly interface: string | undefined;
  readonly nextHops: readonly Address[];
  readonly announce: 'L2' | 'None';
  readonly problems: readonly EgressProblem[];
}

/** Blocks and ranges of a pool, each with its field. */
interface Part {
  readonly field: string;
  readonly value: string;
  readonly addresses: AddressSet;
}

const accepted = (reason: string, { field, value }: Pick<Part, 'field' | 'value'>, remedy: string): EgressProblem => ({
  condition: 'Accepted',
  reason,
  field,
  value,
  remedy,
});

const blockParts = ({ blocks = [] }: EgressIPPool['spec']): Part[] =>
  blocks.map((value, index) => {
    const prefix = tryParsePrefix(value);
    return { field: `spec.blocks[${index}]`, value, addresses: AddressSet.of(prefix ? [prefix] : []) };
  });

const rangeParts = ({ ranges = [] }: EgressIPPool['spec']): Part[] =>
  ranges.map(({ from, to }, index) => {
    const [first, last] = [tryParseAddress(from), tryParseAddress(to)];
    const isRange = first && last && first.family === last.family && first.value <= last.value;
    const addresses = isRange ? AddressSet.between(first, last) : AddressSet.empty;
    return { field: `spec.ranges[${index}]`, value: `${from}-${to}`, addresses };
  });

const exclusionsOf = ({ exclusions = [] }: EgressIPPool['spec']): AddressSet =>
  AddressSet.of(
    exclusions.flatMap((text): readonly Prefix[] => {
      const address = tryParseAddress(text);
      const prefix = address ? hostPrefix(address) : tryParsePrefix(text);
      return prefix ? [prefix] : [];
    }),
  );

const sharesWith = (addresses: AddressSet, other: AddressSet): boolean =>
  addresses.toPrefixes().some((prefix) => other.overlaps(prefix));

const clusterProblems = (part: Part, { pods, services }: ClusterPrefixes): EgressProblem[] =>
  (
    [
      ['pods', pods],
      ['Services', services],
    ] as const
  ).flatMap(([what, prefixes]) =>
    prefixes
      .filter((prefix) => sharesWith(part.addresses, AddressSet.of([prefix])))
      .map((prefix) =>
        accepted(
          'PoolOverlapsCluster',
          part,
          `must not hold addresses of ${what} (${formatPrefix(prefix)}): take another block`,
        ),
      ),
  );

const parsePool = ({ metadata, spec }: EgressIPPool, older: readonly Pool[], cluster: ClusterPrefixes): Pool => {
  const parts = [...blockParts(spec), ...rangeParts(spec)];
  const unreadable = parts
    .filter(({ addresses }) => addresses.isEmpty)
    .map((part) =>
      accepted(
        'InvalidBlock',
        part,
        'must be a block like 192.0.2.0/28, or a range from an address to one that is not below it',
      ),
    );
  const overlaps = parts.flatMap((part) =>
    older
      .filter(({ held }) => sharesWith(part.addresses, held))
      .map(({ name }) =>
        accepted(
          'PoolOverlap',
          part,
          `shares addresses with the older EgressIPPool ${name}, which keeps them: take another block`,
        ),
      ),
  );
  const inside = AddressSet.of([...cluster.pods, ...cluster.services]);
  const given = parts.reduce((all, { addresses }) => all.union(addresses), AddressSet.empty).subtract(inside);
  const held = older.reduce((rest, pool) => rest.subtract(pool.held), given);
  return {
    name: metadata.name,
    given,
    held,
    allocatable: held.subtract(exclusionsOf(spec)),
    nodeSelector: spec.nodeSelector,
    namespaceSelector: spec.namespaceSelector,
    interface: spec.interface,
    nextHops: (spec.nextHops ?? []).flatMap((text) => tryParseAddress(text) ?? []),
    announce: spec.announce ?? 'L2',
    problems: [...unreadable, ...overlaps, ...parts.flatMap((part) => clusterProblems(part, cluster))],
  };
};

/** Pools by name. Addresses in several pools belong to the oldest; the others report it and lack these addresses alone. */
export const parsePools = (pools: readonly EgressIPPool[], cluster: ClusterPrefixes): ReadonlyMap<string, Pool> => {
  const byAge = pools.toSorted((a, b) =>
    firstDifference(
      compareTexts(a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? ''),
      compareTexts(a.metadata.name, b.metadata.name),
    ),
  );
  const parsed: Pool[] = [];
  for (const pool of byAge) parsed.push(parsePool(pool, parsed, cluster));
  return new Map(parsed.map((pool) => [pool.name, pool]));
};
