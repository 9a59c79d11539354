import type { EgressNodeSlice, EgressNodeSliceSpec, OwnedAddress } from '@unbounded/crds';
import type { Address } from '@unbounded/ip';

import { compareTexts, groupBy } from '../order.ts';
import type { EgressNode } from '../snapshot.ts';
import { planNodeSlices } from './node-slices.plan.ts';
import type { RoutedPod } from './pod-places.ts';
import { sliceName } from './slice-name.ts';

/** What all slices together hold. */
export interface SliceContents {
  readonly nodes: readonly EgressNode[];
  readonly pods: readonly RoutedPod[];
  readonly owned: ReadonlyMap<string, readonly OwnedAddress[]>;
  /** Nodes that can own an address: they get a slice to report in. */
  readonly reporters: ReadonlySet<string>;
  readonly former: readonly EgressNodeSlice[];
}

/** Cheaper than its text, where there are many. */
const keyOf = ({ family, value }: Address): bigint => (family === 4 ? value : -value);

/**
 * Of two pods of a node that state one address neither has it: the address of a pod that has ended is another pod's before its status says so,
 * and the owner would translate packets of that one by the routes of the former.
 */
const withoutShared = (podsOfNode: readonly RoutedPod[]): readonly RoutedPod[] => {
  const [once, again] = [new Set<bigint>(), new Set<bigint>()];
  for (const key of podsOfNode.flatMap(({ pod }) => pod.addresses.map(keyOf))) (once.has(key) ? again : once).add(key);
  if (again.size === 0) return podsOfNode;
  return podsOfNode.map(({ pod, ...rest }) => {
    return { ...rest, pod: { ...pod, addresses: pod.addresses.filter((address) => !again.has(keyOf(address))) } };
  });
};

/** For each owner the pods whose packets it translates, with the routes that lead to it. */
const sourcesByOwner = (pods: readonly RoutedPod[]): ReadonlyMap<string, readonly RoutedPod[]> => {
  const byOwner = new Map<string, RoutedPod[]>();
  for (const { pod, routes } of pods) {
    const owners = new Set(routes.flatMap(({ route }) => (route.egress ?? []).flatMap(({ node }) => node ?? [])));
    for (const owner of owners) {
      const toOwner = routes.filter(({ route }) => (route.egress ?? []).some(({ node }) => node === owner));
      const sources = byOwner.get(owner);
      if (sources) sources.push({ pod, routes: toOwner });
      else byOwner.set(owner, [{ pod, routes: toOwner }]);
    }
  }
  return byOwner;
};

/** The slices of all nodes by name. A node without pods, addresses and the prospect of some has none. */
export const planSlices = (contents: SliceContents): ReadonlyMap<string, EgressNodeSliceSpec> => {
  const { nodes, owned, reporters, former } = contents;
  const stated = groupBy(contents.pods, ({ pod }) => pod.node);
  const podsOn = new Map([...stated].map(([name, own]) => [name, withoutShared(own)]));
  const sources = sourcesByOwner([...podsOn.values()].flat());
  const formerOf = groupBy(
    former.map(({ spec }) => spec),
    ({ nodeName }) => nodeName,
  );
  const slices = nodes
    .toSorted((a, b) => compareTexts(a.name, b.name))
    .filter(({ name }) => podsOn.has(name) || sources.has(name) || owned.has(name) || reporters.has(name))
    .flatMap((node) => {
      const { name } = node;
      const content = {
        node,
        pods: podsOn.get(name) ?? [],
        sources: sources.get(name) ?? [],
        owned: owned.get(name) ?? [],
      };
      return planNodeSlices(content, formerOf.get(name) ?? []);
    });
  return new Map(slices.map((slice) => [sliceName(slice.nodeName, slice.index), slice]));
};
