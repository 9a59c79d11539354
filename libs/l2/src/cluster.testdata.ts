import { annotations, type Network, type NetworkEndpoint, PROTECTION_FINALIZER } from '@unbounded/crds';
import type { HostingNode, L2ClusterSnapshot, PlacedPod } from './cluster-snapshot.ts';
import { endpoint, fdbEntry, neighbor, network } from './testdata.ts';

/** What the controller sees: times in seconds since 1970, UIDs that follow from names. */

export const timeOf = (seconds: number): string => new Date(seconds * 1000).toISOString();

export const nodeObject = (
  name: string,
  tunnelMtu = '1420',
  { uid = `uid-${name}`, created = 0 } = {},
): HostingNode => ({
  metadata: {
    ...{ name, uid, creationTimestamp: timeOf(created) },
    annotations: tunnelMtu === '' ? {} : { [annotations.tunnelMtu]: tunnelMtu },
  },
});

/** The Pod of endpoint eN. */
export const podObject = (number: number, uid = `uid-p${number}`, nodeName?: string): PlacedPod => ({
  metadata: { namespace: 'shop', name: `p${number}`, uid },
  ...(nodeName !== undefined && { spec: { nodeName } }),
});

/** {@link network} as it is when the controller has seen it, with no status unless one is given. */
export const protectedNetwork = (
  name: string,
  spec: Partial<Network['spec']> = {},
  status: Network['status'] = {},
): Network => ({
  ...network(name, spec, status),
  metadata: { name, creationTimestamp: timeOf(0), finalizers: [PROTECTION_FINALIZER] },
});

export const createdEndpoint = (
  number: number,
  node: string,
  spec: Partial<NetworkEndpoint['spec']> = {},
  created = 1,
): NetworkEndpoint => {
  const plain = endpoint(number, node, spec);
  const owner = { apiVersion: 'v1', kind: 'Pod', name: `p${number}`, uid: `uid-p${number}` };
  return {
    ...plain,
    metadata: { ...plain.metadata, creationTimestamp: timeOf(created), ownerReferences: [owner] },
  };
};

/** All that the nodes of the endpoints write, and a Pod for each of them; every list complete unless it says otherwise. */
export const clusterOf = (
  networks: readonly Network[],
  endpoints: readonly NetworkEndpoint[],
  rest: Partial<L2ClusterSnapshot> = {},
): L2ClusterSnapshot => ({
  ...{ isComplete: true, networks, endpoints },
  fdbEntries: endpoints.map((one) => fdbEntry(one)),
  neighbors: endpoints.flatMap((one) => one.spec.addresses.map((ip) => neighbor(one, ip))),
  nodes: [...new Set(endpoints.map(({ spec }) => spec.node))].map((name) => nodeObject(name)),
  pods: endpoints.map(({ metadata }) => podObject(Number(metadata.name.slice(1)))),
  ...rest,
});
