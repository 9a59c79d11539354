import type { Mesh } from '@unbounded/crds';
import type { Cluster, KubeObject } from '@unbounded/kube';
import { expect, test } from 'vitest';
import { type Admission, createAdmission, NoDeviceError } from './admission.ts';

/** What the API server says of a pod, and when a pod may be told that it is no device. */

const UID = '0f6e5b1c-1111-4222-8333-444455556666';
const REQUEST = { podNamespace: 'shop', podName: 'web-0', podUid: UID, containerId: 'c', netns: '/run/netns/a' };
const MESH = {
  spec: { tailnet: { rules: [{ namespaceSelector: {}, join: 'UnlessDeclined', allowedTags: ['tag:k8s-pod'] }] } },
} as unknown as Mesh;

interface Given {
  readonly uid?: string;
  readonly nodeName?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly isMeshKnown?: boolean;
}

const admissionOf = ({ uid = UID, nodeName = 'n1', annotations = {}, isMeshKnown = true }: Given): Admission => {
  const pod = { metadata: { namespace: 'shop', name: 'web-0', uid, annotations }, spec: { nodeName } };
  const namespace = { metadata: { name: 'shop', labels: {} } };
  const client = ({ plural }: { readonly plural: string }) => ({
    get: () => Promise.resolve((plural === 'pods' ? pod : namespace) as unknown as KubeObject),
  });
  return createAdmission({
    cluster: { client } as unknown as Pick<Cluster, 'client'>,
    nodeName: 'n1',
    mesh: () => (isMeshKnown ? MESH : undefined),
    isMeshKnown: () => isMeshKnown,
  });
};
const start = (given: Given = {}): Promise<unknown> =>
  admissionOf(given)
    .startOf(REQUEST as Parameters<Admission['startOf']>[0], AbortSignal.timeout(1000))
    .catch((error: unknown) => error);

const NO_DEVICE: unknown = expect.any(NoDeviceError);

test('a pod that a rule of the Mesh selects starts as the rule says', async () => {
  expect(await start()).toBe('Immediate');
});

test.each<[what: string, given: Given]>([
  ['a pod that has declined', { annotations: { 'net.unbounded-cloud.io/tailnet': 'false' } }],
  ['a pod of another node', { nodeName: 'n2' }],
  [
    'a static pod, whose copy at the API server has a UID of its own',
    { uid: 'copy', annotations: { 'kubernetes.io/config.mirror': UID } },
  ],
])('%s is no device', async (_, given) => {
  expect(await start(given)).toEqual(NO_DEVICE);
});

test.each<[what: string, given: Given]>([
  ['while the Mesh is not known, a pod that is selected', { isMeshKnown: false }],
  [
    'while the Mesh is not known, a pod that has asked',
    { isMeshKnown: false, annotations: { 'net.unbounded-cloud.io/tailnet': 'true' } },
  ],
  ['a pod of which the API server has another one', { uid: 'another' }],
  [
    'a pod whose copy is of another static pod',
    { uid: 'copy', annotations: { 'kubernetes.io/config.mirror': 'another' } },
  ],
])('%s waits', async (_, given) => {
  const answer = await start(given);
  expect(answer).toBeInstanceOf(Error);
  expect(answer).not.toEqual(NO_DEVICE);
});
