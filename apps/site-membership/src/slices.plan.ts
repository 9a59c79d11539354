import {
  GROUP_VERSION,
  MAX_SLICE_NODES,
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

/** The slices of a Site: its nodes by name, 500 to a slice, the last one may have fewer. No nodes, no slice. */
export const planSlices = ({ metadata }: Site, nodes: readonly NodeFacts[]): readonly SiteNodeSlice[] => {
  const sorted = nodes.toSorted(byName).map(toSiteNode);
  return Array.from({ length: Math.ceil(sorted.length / MAX_SLICE_NODES) }, (_, index) => {
    const part = sorted.slice(index * MAX_SLICE_NODES, (index + 1) * MAX_SLICE_NODES);
    return {
      apiVersion: GROUP_VERSION,
      kind: 'SiteNodeSlice',
      metadata: {
        name: sliceName(metadata.name, index),
        ownerReferences: [
          {
            apiVersion: GROUP_VERSION,
            kind: 'Site',
            name: metadata.name,
            uid: metadata.uid ?? '',
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
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
