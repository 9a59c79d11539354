import { GROUP_VERSION, TAILNET_DEVICE_FINALIZER, type TailnetDevice, type TailnetSettings } from '@unbounded/crds';
import type { Labels } from '@unbounded/label-selector';

import { refusal, RefusedAnnotationError } from './asked-device.ts';
import { createHostNames } from './host-names.ts';
import { planDevice, REQUEST } from './joining.ts';
import { CONTROL_URL_DEFAULT } from './tailnet-choice.ts';

/** Which records of devices there are to be: one for each pod that runs and that a rule lets in, of the pod's own name. */

/** As the API server has it. */
export interface TailnetPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly annotations: Readonly<Record<string, string>>;
  /** Absent: it is not scheduled yet. */
  readonly node?: string;
  /** It has the network namespace of its host, which becomes no device. */
  readonly isOnHostNetwork: boolean;
  /** Its containers have ended, and do not start again. */
  readonly hasEnded: boolean;
  readonly isBeingDeleted: boolean;
}

export interface RecordsInput {
  /** Absent: no record is made; those that there are end where a Mesh is there that says so. */
  readonly settings: TailnetSettings | undefined;
  /** That there is no Mesh ends nothing: it may have been deleted to be made anew, and identities would not come back. */
  readonly hasMesh: boolean;
  readonly pods: readonly TailnetPod[];
  readonly records: readonly TailnetDevice[];
  /** By name; a pod whose namespace is not known yet waits. */
  readonly namespaces: ReadonlyMap<string, Labels>;
  /** Hexadecimal, other digits for another text (SHA-256). */
  readonly digestOf: (text: string) => string;
}

export type RecordEnd = 'PodGone' | 'PodReplaced' | 'PodEnded' | 'NodeChanged' | 'TailnetGone';

export interface RecordsPlan {
  readonly creates: readonly TailnetDevice[];
  /** Those whose deletion was not asked for yet. */
  readonly deletes: readonly { readonly record: TailnetDevice; readonly reason: RecordEnd }[];
  readonly refusals: readonly { readonly pod: TailnetPod; readonly message: string }[];
}

const keyOf = ({ namespace = '', name }: { readonly namespace?: string; readonly name: string }): string =>
  `${namespace}/${name}`;

/**
 * Why a record ends; undefined: it stays. Annotations, rules and labels are read when the pod starts, so that what they say later
 * ends none.
 */
export const recordEndOf = (
  { spec }: TailnetDevice,
  pod: TailnetPod | undefined,
  hasTailnet: boolean,
): RecordEnd | undefined => {
  if (!hasTailnet) return 'TailnetGone';
  if (!pod) return 'PodGone';
  if (pod.uid !== spec.podUID) return 'PodReplaced';
  if (pod.hasEnded) return 'PodEnded';
  return pod.node === spec.node ? undefined : 'NodeChanged';
};

const recordOf = (
  { namespace, name, uid, node }: TailnetPod & { readonly node: string },
  spec: Pick<TailnetDevice['spec'], 'hostName' | 'isNameAsked' | 'tags' | 'controlURL'>,
): TailnetDevice => ({
  apiVersion: GROUP_VERSION,
  kind: 'TailnetDevice',
  metadata: {
    ...{ namespace, name, finalizers: [TAILNET_DEVICE_FINALIZER] },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid }],
  },
  spec: { node, pod: name, podUID: uid, ...spec },
});

/** A pod that gets a record as soon as its rule lets it; the record of a predecessor of its name has to be gone before. */
const isWaiting = (pod: TailnetPod): pod is TailnetPod & { readonly node: string } =>
  pod.node !== undefined && !pod.hasEnded && !pod.isBeingDeleted;

const wantedDevice = (pod: TailnetPod, { settings, namespaces, digestOf }: RecordsInput) => {
  const { namespace, name, annotations, isOnHostNetwork } = pod;
  const wanted = planDevice(
    settings,
    { namespace, name, annotations, namespaceLabels: namespaces.get(namespace)! },
    digestOf,
  );
  if (!wanted || !isOnHostNetwork) return wanted;
  if (annotations[REQUEST] === undefined) return undefined;
  throw refusal(REQUEST, annotations[REQUEST], 'a pod on the host’s network is no device: leave the annotation out');
};

export const planRecords = (input: RecordsInput): RecordsPlan => {
  const { settings, hasMesh, pods, records, namespaces, digestOf } = input;
  const hasTailnet = settings !== undefined || !hasMesh;
  const podOf = new Map(pods.map((pod) => [keyOf(pod), pod]));
  const recorded = new Set(records.map(({ metadata }) => keyOf(metadata)));
  const hostNames = createHostNames(
    records.map(({ spec }) => spec.hostName),
    digestOf,
  );
  const creates: TailnetDevice[] = [];
  const refusals: { pod: TailnetPod; message: string }[] = [];
  // Of pods that ask for one name at once the first keeps it, whatever the order in which a cache lists them.
  const waiting = pods
    .filter((pod) => !recorded.has(keyOf(pod)) && namespaces.has(pod.namespace))
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  for (const pod of waiting) {
    if (!isWaiting(pod)) continue;
    try {
      const wanted = wantedDevice(pod, input);
      if (!wanted) continue;
      const hostName = hostNames.take(wanted.hostName, keyOf(pod));
      const isNameAsked = wanted.isNameAsked && { isNameAsked: true };
      const controlURL = settings?.controlURL ?? CONTROL_URL_DEFAULT;
      creates.push(recordOf(pod, { hostName, ...isNameAsked, tags: wanted.tags, controlURL }));
    } catch (error) {
      if (!(error instanceof RefusedAnnotationError)) throw error;
      refusals.push({ pod, message: error.message });
    }
  }
  const deletes = records
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .flatMap((record) => {
      const reason = recordEndOf(record, podOf.get(keyOf(record.metadata)), hasTailnet);
      return reason === undefined ? [] : [{ record, reason }];
    });
  return { creates, deletes, refusals };
};
