import { type EgressNodeSlice, GROUP_VERSION } from '@unbounded/crds';

type Subnets = NonNullable<NonNullable<EgressNodeSlice['status']>['subnets']>;

/**
 * The networks that nodes are attached to, as their agents reported them last. They stand in slice 0 of a node: when someone deletes it,
 * the node would be attached to nothing until its agent reports again, and its addresses would move to other nodes.
 */
export interface KnownSubnets {
  /** The slices with the networks of those nodes that have lost their reports; for plans only. */
  complete(slices: readonly EgressNodeSlice[], nodes: readonly NodeIdentity[]): readonly EgressNodeSlice[];
}

interface NodeIdentity {
  readonly metadata: { readonly name: string; readonly uid?: string };
}

/** What a plan takes from it: that the node has nothing, and is attached to these. */
const reportOf = ({ metadata }: NodeIdentity, subnets: Subnets): EgressNodeSlice => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressNodeSlice',
  metadata: { name: `${metadata.name}-0` },
  spec: { nodeName: metadata.name, nodeUID: metadata.uid ?? '', index: 0 },
  status: { subnets },
});

export const createKnownSubnets = (): KnownSubnets => {
  /** By the UID of the Node. */
  let known: ReadonlyMap<string, Subnets> = new Map();

  return {
    complete: (slices, nodes) => {
      const firsts = new Map(slices.filter(({ spec }) => spec.index === 0).map((slice) => [slice.spec.nodeUID, slice]));
      const subnetsOf = (uid: string): Subnets | undefined => firsts.get(uid)?.status?.subnets ?? known.get(uid);
      // Of nodes that exist alone: a Node that is made anew reports for itself.
      known = new Map(
        nodes.flatMap(({ metadata: { uid = '' } }) => {
          const subnets = subnetsOf(uid);
          return subnets ? [[uid, subnets] as const] : [];
        }),
      );
      const completed = slices.map((slice) => {
        const { spec, status } = slice;
        const subnets = known.get(spec.nodeUID);
        const isLost = spec.index === 0 && status?.subnets === undefined && subnets !== undefined;
        return isLost ? { ...slice, status: { ...status, subnets } } : slice;
      });
      const missing = nodes.flatMap((node) => {
        const { uid = '' } = node.metadata;
        const subnets = known.get(uid);
        return subnets && !firsts.has(uid) ? [reportOf(node, subnets)] : [];
      });
      return [...completed, ...missing];
    },
  };
};
