import { DEFAULT_NAMESPACE, kinds } from '@unbounded/crds';
import {
  type Cluster,
  clientOf,
  coreClients,
  ensureCrds,
  isConflict,
  type KubeObject,
  namespaces,
  type ResourceClient,
} from '@unbounded/kube';

const deleteAll = async <T extends KubeObject>(client: ResourceClient<T>): Promise<void> => {
  const objects = await client.listAll();
  await Promise.all(
    objects.map(async ({ metadata: { name, namespace, finalizers } }) => {
      if (finalizers && finalizers.length > 0)
        await client.mergePatch(name, { metadata: { finalizers: null } }, { namespace });
      await client.delete(name, { namespace }).catch(() => undefined); // gone already
    }),
  );
};

/** Installs our kinds and the namespace `unbounded-system`, and removes every object that a test may have left. */
export const resetCluster = async (cluster: Cluster): Promise<void> => {
  const { crds, events, leases, nodes } = coreClients(cluster);
  if ((await crds.listAll()).length < kinds.length) await ensureCrds(crds, kinds);
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: DEFAULT_NAMESPACE } };
  await cluster
    .client(namespaces)
    .create(namespace)
    .catch((error: unknown) => {
      if (!isConflict(error)) throw error;
    });
  for (const kind of kinds) await deleteAll(clientOf(cluster, kind));
  await deleteAll(nodes);
  await deleteAll(events);
  for (const { metadata } of await leases.listAll({ namespace: DEFAULT_NAMESPACE })) {
    await leases.delete(metadata.name, { namespace: DEFAULT_NAMESPACE });
  }
};
