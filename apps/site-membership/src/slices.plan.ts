import {
  GROUP_VERSION,
  MAX_SLICE_NODES,
  placeKeys,
  sameJson,
  type Site,
  type SiteNode,
  type SiteNodeSlice,
} from '@unbounded/crds';
import { keyRotationOf, type NodeFacts } from '@unbounded/membership';

const toSiteNode = (node: NodeFacts): SiteNode => ({
  name: node.name,
  ...(node.wireGuardPublicKey === undefined ? {} : { wireGuardPublicKey: node.wireGuardPublicKey }),
  ...keyRotationOf(node),
  internalIPs: node.internalIPs,
  podCIDRs: node.podCIDRs,
  ...(node.tunnelProtocols === undefined ? {} : { tunnelProtocols: node.tunnelProtocols }),
  ...(node.l2Locator === undefined ? {} : { l2Locator: node.l2Locator }),
});

const byName = (a: NodeFacts, b: NodeFacts): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

const sliceName = (site: string, index: number): string => `${site}-${index}`;

/** In which slice of the Site each node is; of a slice that is not one of ours nothing counts. */
const placesIn = (site: string, slices: readonly SiteNodeSlice[]): ReadonlyMap<string, number> =>
  new Map(
    slices
      .filter(
        ({ metadata, siteName, sliceIndex }) => siteName === site && metadata.name === sliceName(site, sliceIndex),
      )
      .flatMap(({ nodes = [], sliceIndex }) => nodes.map(({ name }) => [name, sliceIndex] as const)),
  );

/**
 * The slices of a Site, 500 nodes to a slice at most, those of one by name. A node stays in its slice: a node that comes or goes changes one
 * slice, and none is missing from all while several are written. No nodes, no slice. No owner: the garbage collector would delete all slices
 * of a Site whose deletion is foreground (`--cascade=foreground`) while its finalizer holds it for its nodes, and with them who had what first.
 * @param observed those that there are
 */
export const planSlices = (
  { metadata }: Site,
  nodes: readonly NodeFacts[],
  observed: readonly SiteNodeSlice[],
): readonly SiteNodeSlice[] => {
  const sorted = nodes.toSorted(byName).map(toSiteNode);
  const names = sorted.map(({ name }) => name);
  const places = placeKeys(names, placesIn(metadata.name, observed), MAX_SLICE_NODES);
  const parts = Map.groupBy(sorted, ({ name }) => places.get(name)!);
  return [...parts.keys()]
    .toSorted((a, b) => a - b)
    .map((index) => {
      const part = parts.get(index)!;
      return {
        apiVersion: GROUP_VERSION,
        kind: 'SiteNodeSlice',
        metadata: { name: sliceName(metadata.name, index) },
        siteName: metadata.name,
        sliceIndex: index,
        nodeCount: part.length,
        nodes: part,
      };
    });
};

export interface SliceDiff {
  readonly create: readonly SiteNodeSlice[];
  /** With the version of the observed slice: a write on top of an unseen change is refused. */
  readonly update: readonly SiteNodeSlice[];
  /** Last, so that no node is missing from all slices in between. */
  readonly remove: readonly SiteNodeSlice[];
}

const contentOf = ({ metadata, siteName, sliceIndex, nodeCount, nodes = [] }: SiteNodeSlice): object => ({
  owners: metadata.ownerReferences,
  siteName,
  sliceIndex,
  nodeCount,
  nodes,
});

export const diffSlices = (observed: readonly SiteNodeSlice[], desired: readonly SiteNodeSlice[]): SliceDiff => {
  const existing = new Map(observed.map((slice) => [slice.metadata.name, slice]));
  const wanted = new Set(desired.map(({ metadata }) => metadata.name));
  const update = desired.flatMap((slice) => {
    const old = existing.get(slice.metadata.name);
    if (!old || sameJson(contentOf(old), contentOf(slice))) return [];
    const version = old.metadata.resourceVersion;
    return [
      { ...slice, metadata: { ...slice.metadata, ...(version === undefined ? {} : { resourceVersion: version }) } },
    ];
  });
  return {
    create: desired.filter(({ metadata }) => !existing.has(metadata.name)),
    update,
    remove: observed.filter(({ metadata }) => !wanted.has(metadata.name)),
  };
};
