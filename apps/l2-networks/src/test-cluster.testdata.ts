import {
  annotations,
  fdbEntryKind,
  GROUP_VERSION,
  L2_ENDPOINT_FINALIZER,
  labels,
  type Network,
  neighborKind,
  type NetworkEndpoint,
  networkEndpointKind,
  networkKind,
} from '@unbounded/crds';
import { type Cluster, clientOf, coreClients, namespaces, pods, serviceAccounts } from '@unbounded/kube';
import { fdbEntryName, neighborName } from '@unbounded/l2';
import { type ApiServer, type AppProcess, createNode, resetCluster, startApp, until } from '@unbounded/testing';

export const SHOP = 'shop';
const inShop = { namespace: SHOP } as const;
const macOf = (number: number): string => `02:00:00:00:00:${number.toString(16).padStart(2, '0')}`;
const addressOf = (number: number): string => `192.0.2.${number}`;

const clientsOf = (cluster: Cluster) => ({
  networks: clientOf(cluster, networkKind),
  endpoints: clientOf(cluster, networkEndpointKind),
  fdbEntries: clientOf(cluster, fdbEntryKind),
  neighbors: clientOf(cluster, neighborKind),
  nodes: coreClients(cluster).nodes,
  pods: cluster.client(pods),
});

type Clients = ReturnType<typeof clientsOf>;

const createOwner = async ({ pods: client }: Clients, number: number, node: string): Promise<string> => {
  const spec = { nodeName: node, automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i' }] };
  const { metadata } = await client.create({ metadata: { name: `p${number}`, ...inShop }, spec });
  return metadata.uid!;
};

const inNetwork = (name: string, network: string) => ({
  ...{ apiVersion: GROUP_VERSION, metadata: { name, labels: { [labels.network]: network } } },
});

/** As the agent of the node does: endpoint eN of Pod pN, then the entries of its addresses. */
const attach = async (clients: Clients, number: number, { node, network }: Record<'node' | 'network', string>) => {
  const uid = await createOwner(clients, number, node);
  const [name, mac, ip] = [`e${number}`, macOf(number), addressOf(number)];
  await clients.endpoints.create({
    ...{ apiVersion: GROUP_VERSION, kind: 'NetworkEndpoint' },
    metadata: {
      ...{ name, ...inShop, finalizers: [L2_ENDPOINT_FINALIZER] },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: `p${number}`, uid }],
    },
    spec: { network, node, pod: `p${number}`, interface: 'net1', mac, addresses: [ip] },
  });
  const bound = { endpoint: `${SHOP}/${name}`, managingNode: node };
  const [fdb, neighbor] = [fdbEntryName(network, mac), neighborName(network, ip)];
  const spec = { network, source: 'static' } as const;
  await clients.fdbEntries.create({ ...inNetwork(fdb, network), kind: 'FDBEntry', spec: { ...spec, mac } });
  await clients.fdbEntries.mergePatch(fdb, { status: bound }, { subresource: 'status' });
  await clients.neighbors.create({ ...inNetwork(neighbor, network), kind: 'Neighbor', spec: { ...spec, ip } });
  await clients.neighbors.mergePatch(neighbor, { status: { ...bound, mac } }, { subresource: 'status' });
};

const deletePod = async (cluster: Cluster, name: string): Promise<void> => {
  const path = `/api/v1/namespaces/${SHOP}/pods/${name}`;
  await cluster.transport.send({ method: 'DELETE', path, body: { gracePeriodSeconds: 0 } }).catch(() => undefined);
};

/** What is to be seen of the program on a real API server, and what agents and people write there. */
export const createTestCluster = (api: ApiServer) => {
  const { cluster } = api;
  const clients = clientsOf(cluster);
  const apps: AppProcess[] = [];

  return {
    clients,
    addNode: (name: string, tunnelMtu = '1420') =>
      createNode(clients.nodes, { name, annotations: { [annotations.tunnelMtu]: tunnelMtu } }),
    addNetwork: (name: string, spec: Partial<Network['spec']> = {}) =>
      clients.networks.create({
        ...{ apiVersion: GROUP_VERSION, kind: 'Network', metadata: { name } },
        spec: { prefixes: ['192.0.2.0/24'], namespaceSelector: {}, ...spec },
      }),
    attach: (number: number, node: string, network = 'lan') => attach(clients, number, { node, network }),
    /** As Kubernetes does for the last pod of a Node, without the agent. */
    removePod: (number: number) => deletePod(cluster, `p${number}`),
    /** What the agent takes off when nothing of the endpoint is left on its node. */
    release: async (number: number): Promise<void> => {
      await clients.endpoints.mergePatch(`e${number}`, { metadata: { finalizers: null } }, inShop);
      await clients.endpoints.delete(`e${number}`, inShop).catch(() => undefined);
    },
    network: (name = 'lan'): Promise<Network> => clients.networks.get(name),
    endpoint: (number: number): Promise<NetworkEndpoint> => clients.endpoints.get(`e${number}`, inShop),
    /** Names of endpoints and entries. */
    standing: async (): Promise<string[]> => {
      const lists = [clients.endpoints.listAll(), clients.fdbEntries.listAll(), clients.neighbors.listAll()];
      return (await Promise.all(lists)).flat().map(({ metadata }) => metadata.name);
    },
    condition: async (type: string, name = 'lan') =>
      (await clients.networks.get(name)).status?.conditions?.find((one) => one.type === type),
    ready: (name = 'lan') =>
      until(`${name} is ready`, async () =>
        (await clients.networks.get(name)).status?.conditions?.some(
          ({ type, status }) => type === 'Ready' && status === 'True',
        ),
      ),
    start: (...args: string[]): AppProcess => {
      const app = startApp('l2-networks', ['--kubeconfig', api.kubeconfig, ...args]);
      apps.push(app);
      return app;
    },
    /** Ends what a test started, and leaves nothing of it. */
    reset: async (): Promise<void> => {
      for (const app of apps.splice(0)) await app.stop('SIGKILL');
      await resetCluster(cluster);
      const shop = { metadata: { name: SHOP } };
      await cluster
        .client(namespaces)
        .create(shop)
        .catch(() => undefined);
      const account = { metadata: { name: 'default', ...inShop } };
      await cluster
        .client(serviceAccounts)
        .create(account)
        .catch(() => undefined);
      for (const { metadata } of await clients.pods.listAll(inShop)) await deletePod(cluster, metadata.name);
    },
  };
};

export const leads = (app: AppProcess): boolean =>
  app.log.findLast(({ msg }) => msg === 'became leader' || msg === 'no longer leader')?.['msg'] === 'became leader';
