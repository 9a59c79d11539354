import { type ApiServer, borrowApiServer } from '@unbounded/testing';
import { type Pod, pods, type ResourceClient, serviceAccounts } from '@unbounded/kube';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPodMetadataReader } from './pod-metadata.ts';

let api: ApiServer;
let client: ResourceClient<Pod>;
let created: Pod;
const attachment = { containerId: 'c1', netns: '', interface: 'eth0', hostVeth: 'veth1', addresses: [] };

beforeAll(async () => {
  api = await borrowApiServer();
  client = api.cluster.client(pods);
  await api.cluster.client(serviceAccounts).create({ metadata: { name: 'default', namespace: 'default' } });
  created = await client.create({
    metadata: { name: 'web-0', namespace: 'default', labels: { app: 'web' }, annotations: { 'example.net/a': 'b' } },
    spec: { containers: [{ name: 'c', image: 'i' }], automountServiceAccountToken: false },
  });
});
afterAll(() => api?.stop());

test('labels and annotations are those of the pod', async () => {
  const pod = { ...attachment, namespace: 'default', name: 'web-0', uid: created.metadata.uid! };
  const metadata = await createPodMetadataReader(api.cluster)(pod);
  expect(metadata.labels).toEqual({ app: 'web' });
  expect(metadata.annotations).toMatchObject({ 'example.net/a': 'b' });
});

test('a successor of the same name is not taken for the pod', async () => {
  const pod = { ...attachment, namespace: 'default', name: 'web-0', uid: 'of-the-one-before' };
  await expect(createPodMetadataReader(api.cluster)(pod)).rejects.toThrow(
    `pod default/web-0 of UID of-the-one-before is not there: the API server has UID ${created.metadata.uid}`,
  );
});

test('a pod that is not there, and an agent without an API server, give none', async () => {
  const pod = { ...attachment, namespace: 'default', name: 'absent', uid: '' };
  await expect(createPodMetadataReader(api.cluster)(pod)).rejects.toThrow('pods "absent" not found');
  await expect(createPodMetadataReader(undefined)(pod)).rejects.toThrow('the agent has no API server');
});
