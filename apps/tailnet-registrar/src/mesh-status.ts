import type { Mesh } from '@unbounded/crds';
import { applyStatus, type EventRecorder, ignoreGone, type NewCondition, type ResourceClient } from '@unbounded/kube';
import type { TailnetChoice } from '@unbounded/tailnet';

import { TAILNET_READY } from './registrar-objects.ts';
import type { TailnetHealth } from './tailnet-health.ts';

/** What the Mesh says of its tailnet: the one that there are devices in, and whether it can be worked on. */

const FIELD_MANAGER = 'unbounded-tailnet-registrar';

const verdictOf = (
  { server, settings }: TailnetChoice,
  state: TailnetHealth['state'],
): Pick<NewCondition, 'status' | 'reason' | 'message'> => {
  if (state?.failure) return { status: 'False', reason: state.failure.reason, message: state.failure.message };
  if (!settings) {
    const message = `devices of ${server!.controlURL} are removed first: spec.tailnet names another tailnet or none`;
    return { status: 'False', reason: 'Ending', message };
  }
  if (!state) return { status: 'Unknown', reason: 'NotAskedYet', message: `${server!.apiURL} was not asked yet` };
  const isUnseen = server!.credentials.authKeySecret !== undefined;
  const message = isUnseen ? 'by an auth key: devices are not removed with their pods' : `${server!.apiURL} answers`;
  return { status: 'True', reason: 'Ready', message };
};

export interface MeshStatusOptions {
  readonly client: ResourceClient<Mesh>;
  readonly recorder: EventRecorder;
  readonly signal: AbortSignal;
}

/** Without a tailnet neither is there. */
export const writeMeshStatus = async (
  mesh: Mesh,
  choice: TailnetChoice,
  state: TailnetHealth['state'],
  { client, recorder, signal }: MeshStatusOptions,
): Promise<void> => {
  const { generation } = mesh.metadata;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  const update = choice.server
    ? {
        fields: { tailnet: choice.server },
        conditions: [{ type: TAILNET_READY, ...observed, ...verdictOf(choice, state) }],
      }
    : { conditions: [], withdrawn: [TAILNET_READY] };
  // The tailnet was chosen by this version of the object.
  const options = { fieldManager: FIELD_MANAGER, signal, recorder, onlyIfUnchanged: true };
  await applyStatus(client, mesh, update, options).catch(ignoreGone);
};
