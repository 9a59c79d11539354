import {
  fdbEntryKind,
  labels,
  neighborKind,
  type NetworkEndpoint,
  networkEndpointKind,
  networkKind,
  type ObjectsOf,
} from '@unbounded/crds';
import { endpointKey } from '@unbounded/l2';
import type { SectionContext } from '../section.port.ts';
import type { WorldSource } from '../world/source.port.ts';

/**
 * The objects of the Networks that this node hosts, and of no other: its own endpoints say which these are, and what all nodes have in them is
 * followed by their label. When a Network comes or goes, what was followed before is so until the next selection has been read.
 */

const ownKinds = { networks: networkKind, endpoints: networkEndpointKind } as const;
const sharedKinds = { endpoints: networkEndpointKind, fdbEntries: fdbEntryKind, neighbors: neighborKind } as const;

export type L2Objects = ObjectsOf<typeof ownKinds> & ObjectsOf<typeof sharedKinds>;

export interface L2Source {
  /** Undefined until everything has been read once. The same object while nothing in it has changed. */
  snapshot(): L2Objects | undefined;
}

interface Followed {
  readonly selector: string;
  readonly source: WorldSource<typeof sharedKinds>;
}

const versionOf = (one: Followed | WorldSource<typeof ownKinds> | undefined): number | undefined =>
  one && ('source' in one ? one.source : one).snapshot()?.version;

const selectorOf = (endpoints: readonly NetworkEndpoint[]): string | undefined => {
  const networks = [...new Set(endpoints.map(({ spec }) => spec.network))].sort();
  return networks.length === 0 ? undefined : `${labels.network} in (${networks.join(',')})`;
};

/** Of the node's own what it has read itself: that may be newer. */
const merged = (
  own: readonly NetworkEndpoint[],
  others: readonly NetworkEndpoint[],
  node: string,
): NetworkEndpoint[] => [
  ...new Map(
    [...others.filter(({ spec }) => spec.node !== node), ...own].map((endpoint) => [endpointKey(endpoint), endpoint]),
  ).values(),
];

export const createL2Source = ({
  nodeName: node,
  openInputs,
}: Pick<SectionContext, 'nodeName' | 'openInputs'>): L2Source => {
  const own = openInputs(ownKinds, { endpoints: { fieldSelector: `spec.node=${node}` } });
  let current: Followed | undefined;
  let next: Followed | undefined;
  const stop = (followed: Followed | undefined): void => void followed?.source.stop();

  const follow = (labelSelector: string): void => {
    if ((next ?? current)?.selector === labelSelector) return;
    stop(next);
    next = undefined;
    if (current?.selector === labelSelector) return;
    const filter = { labelSelector };
    const source = openInputs(sharedKinds, { endpoints: filter, fdbEntries: filter, neighbors: filter });
    next = { selector: labelSelector, source };
  };
  const unfollow = (): void => {
    stop(next);
    stop(current);
    [current, next] = [undefined, undefined];
  };

  const read = (mine: ObjectsOf<typeof ownKinds>): L2Objects | undefined => {
    const { networks } = mine;
    const endpoints = mine.endpoints.filter(({ spec }) => spec.node === node); // a directory has all
    const selector = selectorOf(endpoints);
    if (selector === undefined) {
      unfollow();
      return { networks, endpoints, fdbEntries: [], neighbors: [] };
    }
    follow(selector);
    if (next?.source.snapshot()) {
      stop(current);
      [current, next] = [next, undefined];
    }
    const shared = current?.source.snapshot()?.objects;
    return shared && { networks, ...shared, endpoints: merged(endpoints, shared.endpoints, node) };
  };
  /** What was read last, and of which versions of which sources. */
  let last: { readonly of: readonly unknown[]; readonly objects: L2Objects | undefined } = {
    of: [],
    objects: undefined,
  };
  const versions = (): readonly unknown[] => [own, current, next].flatMap((one) => [one, versionOf(one)]);

  return {
    snapshot() {
      const mine = own.snapshot()?.objects;
      if (!mine) return undefined;
      const before = versions();
      if (last.objects && last.of.every((value, at) => value === before[at])) return last.objects;
      const objects = read(mine);
      last = { of: versions(), objects };
      return objects;
    },
  };
};
