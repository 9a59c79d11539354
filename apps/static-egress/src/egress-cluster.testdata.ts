import {
  clusterStaticEgressIpKind,
  type EgressIPPool,
  egressIpPoolKind,
  egressKinds,
  type EgressNodeSlice,
  egressNodeSliceKind,
  GROUP_VERSION,
  type StaticEgressIP,
  staticEgressIpKind,
  type StaticEgressRule,
} from '@unbounded/crds';
import { type Cluster, clientOf, coreClients, namespaces, pods, serviceAccounts, services } from '@unbounded/kube';
import { type ApiServer, createNode, resetCluster } from '@unbounded/testing';

export const SHOP = 'shop';
const at = { namespace: SHOP } as const;

const withoutGrace = async (cluster: Cluster, namespace: string, name: string): Promise<void> => {
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
  await cluster.transport.send({ method: 'DELETE', path, body: { gracePeriodSeconds: 0 } }).catch(() => undefined);
};

const clearEgress = async (cluster: Cluster): Promise<void> => {
  for (const kind of egressKinds) {
    const client = clientOf(cluster, kind);
    for (const { metadata } of await client.listAll()) {
      const place = metadata.namespace === undefined ? {} : { namespace: metadata.namespace };
      await client.delete(metadata.name, place).catch(() => undefined);
    }
  }
  const all = await cluster.client(pods).listAll();
  await Promise.all(all.map(({ metadata }) => withoutGrace(cluster, metadata.namespace!, metadata.name)));
  for (const { metadata } of await cluster.client(services).listAll(at)) {
    await cluster.client(services).delete(metadata.name, at);
  }
};

/** Three ready nodes n1 to n3 in 192.0.2.0/24, and the namespace shop; nothing else is left of a test before. */
export const prepareEgressCluster = async ({ cluster }: ApiServer): Promise<void> => {
  await resetCluster(cluster);
  await clearEgress(cluster);
  await cluster
    .client(namespaces)
    .create({ metadata: { name: SHOP } })
    .catch(() => undefined);
  const account = { metadata: { name: 'default', ...at } };
  await cluster
    .client(serviceAccounts)
    .create(account)
    .catch(() => undefined);
  for (const number of [1, 2, 3]) await createReadyNode(cluster, number);
};

export const createReadyNode = async (cluster: Cluster, number: number): Promise<void> => {
  const { nodes } = coreClients(cluster);
  const name = `n${number}`;
  await createNode(nodes, { name, internalIPs: [`192.0.2.${number}`], podCIDRs: [`10.${100 + number}.0.0/16`] });
  const condition = { type: 'Ready', status: 'True', reason: 'Test', message: '' };
  await nodes.mergePatch(name, { status: { conditions: [condition] } }, { subresource: 'status' });
};

interface PodInit {
  readonly node?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly isHostNetwork?: boolean;
}

/** A pod of namespace shop that runs, with an address of its node. */
export const createPod = async (
  cluster: Cluster,
  number: number,
  { node = 'n1', labels = { app: 'web' }, isHostNetwork = false }: PodInit = {},
): Promise<string> => {
  const client = cluster.client(pods);
  const name = `p${number}`;
  const created = await client.create({
    metadata: { name, ...at, labels },
    spec: {
      nodeName: node,
      hostNetwork: isHostNetwork,
      automountServiceAccountToken: false,
      containers: [{ name: 'c', image: 'i' }],
    },
  });
  const ip = `10.${100 + Number(node.slice(1))}.${number >> 8}.${number & 255}`;
  await client.mergePatch(
    name,
    { status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] } },
    { ...at, subresource: 'status' },
  );
  return created.metadata.uid!;
};

export const deletePod = (cluster: Cluster, number: number): Promise<void> => withoutGrace(cluster, SHOP, `p${number}`);

export const egressClients = ({ cluster }: ApiServer) => ({
  rules: clientOf(cluster, staticEgressIpKind),
  clusterRules: clientOf(cluster, clusterStaticEgressIpKind),
  pools: clientOf(cluster, egressIpPoolKind),
  slices: clientOf(cluster, egressNodeSliceKind),
  services: cluster.client(services),
});

export const staticEgress = (name: string, ...rules: readonly StaticEgressRule[]): StaticEgressIP => ({
  apiVersion: GROUP_VERSION,
  kind: 'StaticEgressIP',
  metadata: { name, ...at },
  spec: { rules },
});

export const egressPool = (name: string, spec: EgressIPPool['spec']): EgressIPPool => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressIPPool',
  metadata: { name },
  spec,
});

/** The node that owns an address by the slices, if one does. */
export const ownerIn = (slices: readonly EgressNodeSlice[], address: string): string | undefined =>
  slices.find(({ spec }) => (spec.owned ?? []).some((entry) => entry.address === address && entry.release !== true))
    ?.spec.nodeName;
