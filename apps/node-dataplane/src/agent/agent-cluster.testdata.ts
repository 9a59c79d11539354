/** A real API server in the namespace of a scenario, with two sites; the node is the gateway of the first. */
import { gatewayPoolNodeKind, type KindDefinition, kinds } from '@unbounded/crds';
import { clientOf, coreClients, type KubeObject, type Node } from '@unbounded/kube';
import { createNode, resetCluster, startApiServer } from '@unbounded/testing';
import { objectsFor } from '../testdata.ts';
import { run } from './agent-node.testdata.ts';

export const GATEWAY = 'g1';
export const GATEWAY_ADDRESS = '10.1.0.20';

type Condition = NonNullable<NonNullable<Node['status']>['conditions']>[number];

export interface AgentCluster {
  readonly kubeconfig: string;
  condition(type: string): Promise<Condition | undefined>;
  /** When the gateway last said that it is alive (RFC 3339). */
  lastSignOfLife(): Promise<string>;
  stop(): Promise<void>;
}

/** @param annotations of the first Site */
export const startCluster = async (annotations: Readonly<Record<string, string>>): Promise<AgentCluster> => {
  run('ip', 'link', 'set', 'lo', 'up');
  const api = await startApiServer();
  await resetCluster(api.cluster);
  const { nodes } = coreClients(api.cluster);
  await createNode(nodes, {
    name: GATEWAY,
    internalIPs: [GATEWAY_ADDRESS],
    externalIPs: ['203.0.113.1'],
    podCIDRs: ['100.65.20.0/24'],
    labels: { pool: 'p1' },
  });
  const clientFor = ({ kind: wanted }: KubeObject) =>
    clientOf(api.cluster, kinds.find(({ kind }) => kind === wanted) as KindDefinition);
  const { sites, slices, gatewayPools, assignments, poolPeerings } = objectsFor('VXLAN');
  const [first, ...others] = sites;
  const annotated = { ...first!, metadata: { ...first!.metadata, annotations } };
  for (const object of [
    annotated,
    ...others,
    ...slices,
    ...gatewayPools,
    ...assignments,
    ...poolPeerings,
  ] as KubeObject[])
    await clientFor(object).create(object as never);
  for (const pool of gatewayPools)
    await clientFor(pool).mergePatch(pool.metadata.name, { status: pool.status }, { subresource: 'status' });
  const gateways = clientOf(api.cluster, gatewayPoolNodeKind);
  await gateways.create({
    apiVersion: 'net.unbounded-cloud.io/v1alpha1',
    kind: 'GatewayPoolNode',
    metadata: { name: GATEWAY },
    spec: { nodeName: GATEWAY, gatewayPool: 'p1', site: 's1' },
  } as never);
  return {
    kubeconfig: api.kubeconfig,
    condition: async (type) => (await nodes.get(GATEWAY)).status?.conditions?.find((one) => one.type === type),
    lastSignOfLife: async () => (await gateways.get(GATEWAY)).status?.lastUpdated ?? '',
    stop: () => api.stop(),
  };
};
