import { isRecordOf, type StateFile, stateFile } from '../state/state-file.ts';
import type { StateFaults } from '../state/state-faults.ts';

/** A pod's attachment as the CNI binary told it. */
export interface PodAttachment {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly containerId: string;
  /** Path of the pod's network namespace. */
  readonly netns: string;
  /** Name of the interface inside the pod. */
  readonly interface: string;
  /** Its other end on the node. */
  readonly hostVeth: string | undefined;
  /** MAC of the interface inside; absent: the pod is older than this field, and nobody has read it yet. */
  readonly mac?: string | undefined;
  readonly addresses: readonly string[];
  /** The section whose network the port on the node is of; not set: it is a port of the pod bridge, under the source guard. */
  readonly portOf?: string;
  /** Set where the plugin was called as the main one of a configuration that names a Network: it has to make the interface. */
  readonly joins?: JoinedNetwork;
}

/** What a CNI configuration says of a Network; not validated. */
export interface JoinedNetwork {
  /** `name` of the configuration: GC is about its attachments alone. */
  readonly configuration: string;
  readonly network: unknown;
  readonly segment?: unknown;
  /** Of the capabilities `mac` and `ips`. */
  readonly mac?: unknown;
  readonly ips?: unknown;
}

const isAttachment = (value: unknown): value is PodAttachment =>
  typeof value === 'object' &&
  value !== null &&
  typeof (value as PodAttachment).containerId === 'string' &&
  Array.isArray((value as PodAttachment).addresses);

/** The pods of this node; kept in a file, so that a restarted agent knows them; in memory alone while that cannot be written. */
export interface PodRegistry {
  add(pod: PodAttachment): void;
  /** Unknown ones are fine: DEL may come twice. */
  remove(containerId: string, interfaceName: string): void;
  list(): PodAttachment[];
  /** Forgets pods that went while no agent heard of it. */
  keepOnly(isThere: (pod: PodAttachment) => boolean): void;
}

export const createPodRegistry = (path: string, faults?: StateFaults): PodRegistry => {
  // No pod of today outlives a power cut, and the runtime waits for the answer to each ADD.
  const file: StateFile<Record<string, PodAttachment>> = stateFile(path, isRecordOf(isAttachment), faults, {
    durable: false,
  });
  const pods = new Map(Object.entries(file.read() ?? {}));
  const save = (): void => file.write(Object.fromEntries(pods));
  const keyOf = (containerId: string, interfaceName: string): string => `${containerId}/${interfaceName}`;
  return {
    add(pod) {
      pods.set(keyOf(pod.containerId, pod.interface), pod);
      save();
    },
    remove(containerId, interfaceName) {
      if (pods.delete(keyOf(containerId, interfaceName))) save();
    },
    list: () => [...pods.values()],
    keepOnly(isThere) {
      const gone = [...pods].filter(([, pod]) => !isThere(pod));
      for (const [key] of gone) pods.delete(key);
      if (gone.length > 0) save();
    },
  };
};
