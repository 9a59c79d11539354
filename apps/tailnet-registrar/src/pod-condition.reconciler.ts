import { done, type Reconcile } from '@unbounded/controller-runtime';
import { type Condition, podConditions, type TailnetDevice } from '@unbounded/crds';
import {
  applyStatus,
  ignoreGone,
  type KubeObject,
  type NewCondition,
  type Pod,
  type ResourceClient,
} from '@unbounded/kube';

/** What a pod says of its device, for people and as a readiness gate: as the record has it, which its node writes. */

const FIELD_MANAGER = 'unbounded-tailnet-registrar';

const conditionOf = ({ spec, status }: TailnetDevice): NewCondition => {
  const { state, name, addresses = [], message } = status ?? {};
  if (state === 'Running')
    return {
      type: podConditions.tailnet,
      ...{ status: 'True', reason: state, message: `${name ?? spec.hostName} has ${addresses.join(', ')}` },
    };
  const why = message ?? `node ${spec.node} has not set up device ${spec.hostName} yet`;
  return { type: podConditions.tailnet, status: 'False', reason: state ?? 'Starting', message: why };
};

/** Of a Pod's conditions the cache keeps our own alone, which are as we write them. */
type WithOwnCondition = KubeObject & { readonly status?: { readonly conditions?: readonly Condition[] } };

export interface PodConditionOptions {
  readonly record: (key: string) => TailnetDevice | undefined;
  readonly pod: (key: string) => Pod | undefined;
  readonly client: ResourceClient<Pod>;
}

/** Keys are those of records, which have the names of their pods. */
export const podConditionReconciler = ({ record, pod, client }: PodConditionOptions): Reconcile => {
  return async (key, signal) => {
    const [device, owner] = [record(key), pod(key)];
    if (!device || !owner || device.spec.podUID !== owner.metadata.uid) return done;
    if (device.metadata.deletionTimestamp !== undefined || owner.metadata.deletionTimestamp !== undefined) return done;
    const conditions = [conditionOf(device)];
    const own = client as unknown as ResourceClient<WithOwnCondition>;
    await applyStatus(own, owner as WithOwnCondition, { conditions }, { fieldManager: FIELD_MANAGER, signal }).catch(
      ignoreGone,
    );
    return done;
  };
};
