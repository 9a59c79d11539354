import { type EgressNodeSliceSpec, MAX_EGRESS_SLICE_ADDRESSES, type OwnedAddress, placeKeys } from '@unbounded/crds';
import { formatAddress } from '@unbounded/ip';

import { compareTexts, groupBy } from '../order.ts';
import type { EgressNode } from '../snapshot.ts';
import { placePods, type RoutedPod } from './pod-places.ts';
import { routeTable } from './route-table.ts';

/** What the slices of one node hold. */
export interface NodeContent {
  readonly node: EgressNode;
  readonly pods: readonly RoutedPod[];
  readonly sources: readonly RoutedPod[];
  readonly owned: readonly OwnedAddress[];
}

const podKey = (uid: string): string => `pod ${uid}`;
const sourceKey = (uid: string): string => `source ${uid}`;

/** Where everything stands now, by key. */
const formerPlaces = (former: readonly EgressNodeSliceSpec[]) => {
  const places = (keysOf: (slice: EgressNodeSliceSpec) => readonly string[]): ReadonlyMap<string, number> =>
    new Map(former.flatMap((slice) => keysOf(slice).map((key) => [key, slice.index] as const)));
  return {
    pods: places(({ pods = [], sources = [] }) => [
      ...pods.map(({ uid }) => podKey(uid)),
      ...sources.map(({ uid }) => sourceKey(uid)),
    ]),
    owned: places(({ owned = [] }) => owned.map(({ address }) => address)),
  };
};

interface SliceContent {
  readonly index: number;
  readonly pods: readonly RoutedPod[];
  readonly sources: readonly RoutedPod[];
  readonly owned: readonly OwnedAddress[];
}

const sliceOf = (node: EgressNode, { index, pods, sources, owned }: SliceContent): EgressNodeSliceSpec => {
  const { routes, placesOf } = routeTable([...pods, ...sources].flatMap((routed) => routed.routes));
  const common = (routed: RoutedPod) => ({
    uid: routed.pod.uid,
    addresses: routed.pod.addresses.map(formatAddress),
    routes: placesOf(routed.routes),
  });
  const steered = pods.map((routed) => ({
    ...common(routed),
    namespace: routed.pod.namespace,
    name: routed.pod.name,
  }));
  const translated = sources.map((routed) => ({ ...common(routed), node: routed.pod.node }));
  return {
    nodeName: node.name,
    nodeUID: node.uid,
    index,
    ...(routes.length > 0 && { routes }),
    ...(steered.length > 0 && { pods: steered }),
    ...(owned.length > 0 && { owned }),
    ...(translated.length > 0 && { sources: translated }),
  };
};

/** The slices of a node; number 0 is always there, because the agent reports in it. */
export const planNodeSlices = (content: NodeContent, former: readonly EgressNodeSliceSpec[]): EgressNodeSliceSpec[] => {
  const byUid = (a: RoutedPod, b: RoutedPod): number => compareTexts(a.pod.uid, b.pod.uid);
  const [pods, sources] = [content.pods.toSorted(byUid), content.sources.toSorted(byUid)];
  const owned = content.owned.toSorted((a, b) => compareTexts(a.address, b.address));
  const places = formerPlaces(former);
  const entries = [
    ...pods.map((routed) => ({ ...routed, key: podKey(routed.pod.uid) })),
    ...sources.map((routed) => ({ ...routed, key: sourceKey(routed.pod.uid) })),
  ];
  const podPlaces = placePods(entries, places.pods);
  const ownedPlaces = placeKeys(
    owned.map(({ address }) => address),
    places.owned,
    MAX_EGRESS_SLICE_ADDRESSES,
  );
  const podsIn = groupBy(pods, ({ pod }) => podPlaces.get(podKey(pod.uid)));
  const sourcesIn = groupBy(sources, ({ pod }) => podPlaces.get(sourceKey(pod.uid)));
  const ownedIn = groupBy(owned, ({ address }) => ownedPlaces.get(address));
  const indexes = new Set([0, ...podPlaces.values(), ...ownedPlaces.values()]);
  return [...indexes]
    .toSorted((a, b) => a - b)
    .map((index) =>
      sliceOf(content.node, {
        index,
        pods: podsIn.get(index) ?? [],
        sources: sourcesIn.get(index) ?? [],
        owned: ownedIn.get(index) ?? [],
      }),
    );
};
