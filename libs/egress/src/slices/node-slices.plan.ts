import {
  type EgressNodeSliceSpec,
  MAX_EGRESS_SLICE_ADDRESSES,
  MAX_EGRESS_SLICE_PODS,
  type OwnedAddress,
} from '@unbounded/crds';
import { formatAddress } from '@unbounded/ip';

import { compareTexts, groupBy } from '../order.ts';
import type { KeyedRoute } from '../pods/routes.plan.ts';
import type { EgressNode, EgressPod } from '../snapshot.ts';
import { placeKeys } from './placement.ts';
import { routeTable } from './route-table.ts';

/** A pod with its routes, or with those whose address one node owns. */
export interface RoutedPod {
  readonly pod: EgressPod;
  readonly routes: readonly KeyedRoute[];
}

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
  const podKeys = [...pods.map(({ pod }) => podKey(pod.uid)), ...sources.map(({ pod }) => sourceKey(pod.uid))];
  const podPlaces = placeKeys(podKeys, places.pods, MAX_EGRESS_SLICE_PODS);
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
