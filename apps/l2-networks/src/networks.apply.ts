import { inParallel, type ObjectWrites } from '@unbounded/controller-runtime';
import { type Network, PROTECTION_FINALIZER } from '@unbounded/crds';
import { applyStatus, type EventRecorder, ignoreGone, type ResourceClient, setFinalizer } from '@unbounded/kube';
import type { NetworkPlan } from '@unbounded/l2';

const PARALLEL_WRITES = 8;
const FIELD_MANAGER = 'unbounded-l2-networks';

export interface NetworkWriteOptions {
  readonly client: ResourceClient<Network>;
  readonly writes: ObjectWrites;
  readonly recorder: EventRecorder;
  readonly signal: AbortSignal;
}

/** An object that is being deleted takes no new finalizer. */
const needsFinalizer = ({ network: { metadata }, isProtected }: NetworkPlan): boolean =>
  isProtected
    ? !metadata.finalizers?.includes(PROTECTION_FINALIZER) && metadata.deletionTimestamp === undefined
    : metadata.finalizers?.includes(PROTECTION_FINALIZER) === true;

const writeStatus = (
  { network, fields, conditions }: NetworkPlan,
  { client, recorder, signal }: NetworkWriteOptions,
): Promise<boolean> => {
  const { generation } = network.metadata;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  // A number was chosen for this version of the object: a further leader may have given it another one meanwhile.
  return applyStatus(
    client,
    network,
    { fields, conditions: conditions.map((condition) => ({ ...observed, ...condition })) },
    { fieldManager: FIELD_MANAGER, signal, recorder, onlyIfUnchanged: true },
  );
};

/** The finalizer first: its change asks for the next pass, which writes the status. Each Network on its own; one that is as planned costs nothing. */
export const writeNetworks = (plans: readonly NetworkPlan[], options: NetworkWriteOptions): Promise<void> =>
  inParallel(plans, PARALLEL_WRITES, async (plan) => {
    const { network, isProtected } = plan;
    const { client, writes, signal } = options;
    if (needsFinalizer(plan))
      await writes.attempt(network, 'the finalizer', () =>
        setFinalizer(client, network, { name: PROTECTION_FINALIZER, isPresent: isProtected, signal }).catch(ignoreGone),
      );
    else await writes.attempt(network, 'the status', () => writeStatus(plan, options).catch(ignoreGone));
  });

/** Whether something is given or ends for good, for which a cache may be too old. */
export const isFinal = ({ network, isProtected, fields }: NetworkPlan): boolean =>
  fields.number !== network.status?.number || !isProtected;
