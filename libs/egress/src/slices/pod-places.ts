import { type Fill, MAX_EGRESS_SLICE_PODS, MAX_EGRESS_SLICE_ROUTES, placeItems } from '@unbounded/crds';

import { compareTexts } from '../order.ts';
import type { KeyedRoute } from '../pods/routes.plan.ts';
import type { EgressPod } from '../snapshot.ts';

/** A pod with its routes, or with those whose address one node owns. */
export interface RoutedPod {
  readonly pod: EgressPod;
  readonly routes: readonly KeyedRoute[];
}

/** A pod of a slice, or a source. */
export interface SliceEntry extends RoutedPod {
  readonly key: string;
}

interface SizedEntry extends SliceEntry {
  /** Of itself, without its routes, which it shares. */
  readonly bytes: number;
}

const KIB = 1024;
/**
 * Of the JSON of a slice's pods, sources and routes. etcd refuses objects above 1.5 MiB, and addresses with their reports take some 0.2 MiB of
 * it. A pod alone takes at most 0.3 MiB, so that it fits into an empty slice.
 */
const MOST_BYTES = 768 * KIB;
/** No pod is added beyond: the rest is for those that are there, whose routes grow with the name of an owner. One that moves is cut off for a moment. */
const MOST_BYTES_TO_ADD = 512 * KIB;

/** No less than the JSON has, and the same before a pod has its addresses: it would have to move once it has them. */
const LONGEST_ADDRESS_BYTES = 48;
const LONGEST_PLACE_BYTES = `${MAX_EGRESS_SLICE_ROUTES},`.length;
const FIELD_NAMES_BYTES = 100;
const bytesOf = ({ pod, routes }: RoutedPod): number =>
  FIELD_NAMES_BYTES +
  pod.uid.length +
  pod.namespace.length +
  pod.name.length +
  pod.node.length +
  Math.max(pod.addresses.length, 2) * LONGEST_ADDRESS_BYTES +
  routes.length * LONGEST_PLACE_BYTES;

const createFill = (): Fill<SizedEntry> => {
  const keys = new Set<string>();
  let [entries, bytes] = [0, 0];
  return {
    take: (entry, stands) => {
      const added = entry.routes.filter(({ key }) => !keys.has(key));
      const after = added.reduce((sum, route) => sum + route.bytes, bytes + entry.bytes);
      const hasRoom =
        entries < MAX_EGRESS_SLICE_PODS &&
        keys.size + added.length <= MAX_EGRESS_SLICE_ROUTES &&
        after <= (stands ? MOST_BYTES : MOST_BYTES_TO_ADD);
      if (!hasRoom && entries > 0) return false;
      for (const { key } of added) keys.add(key);
      entries++;
      bytes = after;
      return true;
    },
  };
};

/** The bytes that each namespace's pods would take if none shared a route. */
const demandsOf = (entries: readonly SizedEntry[]): ReadonlyMap<string, number> => {
  const sums = new Map<string, number>();
  for (const { pod, routes, bytes } of entries) {
    const own = routes.reduce((sum, route) => sum + route.bytes, bytes);
    sums.set(pod.namespace, (sums.get(pod.namespace) ?? 0) + own);
  }
  return sums;
};

/**
 * The number of the slice of each entry, by key: by the number of pods, their routes and the bytes of both, so that no rules make a slice that
 * cannot be written, or without a pod's routes. Where a slice overflows, pods of the namespace that takes most of the node's slices move.
 */
export const placePods = (
  given: readonly SliceEntry[],
  former: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> => {
  const entries = given.map((entry): SizedEntry => ({ ...entry, bytes: bytesOf(entry) }));
  const demandOf = demandsOf(entries);
  const order = entries.toSorted(
    (a, b) =>
      demandOf.get(a.pod.namespace)! - demandOf.get(b.pod.namespace)! ||
      compareTexts(a.pod.namespace, b.pod.namespace) ||
      compareTexts(a.key, b.key),
  );
  return placeItems(order, former, createFill);
};
