import {
  type Mesh,
  meshKind,
  podConditions,
  type TailnetDevice,
  tailnetAnnotations,
  tailnetDeviceKind,
} from '@unbounded/crds';
import {
  type Cluster,
  type KubeObject,
  type Namespace,
  namespaces,
  type Pod,
  pods,
  resourceOf,
  secrets,
} from '@unbounded/kube';
import { planRegistration, type TailnetPod } from '@unbounded/tailnet';

/** What the program reads, what of it is kept in memory, and which updates count. */

export const REGISTRAR_RESOURCES = {
  meshes: resourceOf(meshKind),
  devices: resourceOf(tailnetDeviceKind),
  pods,
  namespaces,
} as const;

export const clientsOf = (cluster: Cluster) => ({
  meshes: cluster.client(REGISTRAR_RESOURCES.meshes),
  devices: cluster.client(REGISTRAR_RESOURCES.devices),
  pods: cluster.client(pods),
  secrets: cluster.client(secrets),
});
export type RegistrarClients = ReturnType<typeof clientsOf>;

export const keyOf = ({ metadata: { namespace = '', name } }: KubeObject): string => `${namespace}/${name}`;

const ANNOTATIONS = Object.values(tailnetAnnotations);
const tailnetPart = (annotations: Readonly<Record<string, string>> = {}): Record<string, string> =>
  Object.fromEntries(
    ANNOTATIONS.flatMap((name) => (Object.hasOwn(annotations, name) ? [[name, annotations[name]!]] : [])),
  );

const hasEnded = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';

/** Whose it is, where it runs, and what it asks for. */
export const keptPod = ({ apiVersion, kind, metadata, spec, status }: Pod): Pod => {
  const { name, namespace, uid, resourceVersion, deletionTimestamp, annotations } = metadata;
  return {
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...(kind === undefined ? {} : { kind }),
    metadata: {
      ...{ name, annotations: tailnetPart(annotations) },
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    spec: {
      containers: [],
      ...(spec?.nodeName === undefined ? {} : { nodeName: spec.nodeName }),
      ...(spec?.hostNetwork === true ? { hostNetwork: true } : {}),
    },
    status: {
      ...(status?.phase === undefined ? {} : { phase: status.phase }),
      conditions: (status?.conditions ?? []).filter(({ type }) => type === podConditions.tailnet),
    },
  };
};

export const tailnetPodOf = (pod: Pod): TailnetPod => ({
  namespace: pod.metadata.namespace ?? '',
  name: pod.metadata.name,
  uid: pod.metadata.uid ?? '',
  annotations: tailnetPart(pod.metadata.annotations),
  ...(pod.spec?.nodeName ? { node: pod.spec.nodeName } : {}),
  isOnHostNetwork: pod.spec?.hostNetwork === true,
  hasEnded: hasEnded(pod),
  isBeingDeleted: pod.metadata.deletionTimestamp !== undefined,
});

export const podPrint = (pod: Pod): string => JSON.stringify(tailnetPodOf(pod));

export const keptNamespace = ({ metadata: { name, uid, resourceVersion, labels } }: Namespace): Namespace => ({
  metadata: {
    name,
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(labels === undefined ? {} : { labels }),
  },
});
export const namespacePrint = ({ metadata }: Namespace): string => JSON.stringify(metadata.labels ?? {});

export const meshPrint = ({ spec, status }: Mesh): string =>
  JSON.stringify([spec.tailnet, status?.tailnet, status?.conditions?.filter(({ type }) => type === TAILNET_READY)]);

/** What the plan of records and the metrics depend on. */
export const recordPrint = ({ metadata, spec, status }: TailnetDevice): string =>
  JSON.stringify([metadata.uid, metadata.deletionTimestamp, spec.hostName, status?.state]);

/**
 * What the steps of a record depend on. Its node can write as often as it likes, and should not have a record looked at as often: what it says of
 * a device counts only where it decides something, and nothing of it does when the record ends.
 */
export const stepsPrint = (record: TailnetDevice): string => {
  const { metadata, status = {} } = record;
  const { uid, deletionTimestamp } = metadata;
  const { keysGiven, keyRequest, state, reportedID, sealedKey, keyID, deviceID, goneID, conditions } = status;
  if (deletionTimestamp !== undefined)
    return JSON.stringify([uid, deletionTimestamp, planRegistration(record, 0).steps, keysGiven]);
  return JSON.stringify([
    uid,
    keysGiven,
    keyRequest,
    state,
    reportedID,
    sealedKey,
    keyID,
    deviceID,
    goneID,
    conditions,
  ]);
};

/** What a pod says of its device. */
export const deviceWords = ({ metadata, status }: TailnetDevice): string =>
  JSON.stringify([metadata.uid, status?.state, status?.message, status?.name, status?.addresses]);

/** Of the Mesh. */
export const TAILNET_READY = 'TailnetReady';
/** Of a TailnetDevice. */
export const REGISTERED = 'Registered';
