import { setTimeout as delay } from 'node:timers/promises';
import type { TailnetDevice } from '@unbounded/crds';
import type { Logger } from '@unbounded/telemetry';
import type { StartPolicy } from '@unbounded/tailnet';
import type { Observation } from './agent-metrics.ts';
import type { KeptPod } from './device.plan.ts';
import type { KeeperFiles } from './keeper-files.ts';
import type { KeptPods } from './kept-pods.ts';
import { createLocalApi } from './local-api.ts';
import { createPodDevice, type PodDevice, type PodDeviceParts } from './pod-device.ts';

/** All pods of the node that are devices. Each goes its own way: one whose login hangs holds nobody up. */

interface AddedPod {
  readonly podUID: string;
  readonly namespace: string;
  readonly podName: string;
  readonly container: NonNullable<KeptPod['container']>;
}

export interface PodDevices {
  /** Whether the pod is one already, whatever it asks for now. */
  startOf(podUID: string): StartPolicy | undefined;
  /**
   * Resolves when the network of the pod stands; of one that waits for its device when that is up.
   * @throws Error that says what it waits for, when the time is over
   */
  add(pod: AddedPod, start: StartPolicy, signal: AbortSignal): Promise<PodDevice>;
  /** The container is gone; one of before is nobody's. */
  release(containerId: string): void;
  byContainer(containerId: string): PodDevice | undefined;
  list(): readonly PodDevice[];
  /** For operators: what there is, and what is still to be removed. */
  observe(): Observation;
  /** The record of the pod has changed. */
  onRecord(record: TailnetDevice): void;
  /** Ends what has no record any more, and pods that are gone and never had one. */
  tidy(): Promise<void>;
  /** The devices go on. */
  stop(): Promise<void>;
}

export interface PodDevicesParts extends Pick<PodDeviceParts, 'cluster' | 'writeStatus' | 'onUp'> {
  readonly kept: KeptPods;
  readonly keeper: KeeperFiles;
  /** Of the namespace and name; whichever pod it is of. */
  readonly recordOf: (namespace: string, podName: string) => TailnetDevice | undefined;
  /** What is not there of records is not there. */
  readonly areRecordsKnown: () => boolean;
  /** Live: there is none, it is another pod's, or it is being deleted. @throws Error: the API server does not answer */
  readonly isRecordGone: (pod: KeptPod, signal: AbortSignal) => Promise<boolean>;
  /** Live. @throws Error: the API server does not answer */
  readonly isPodGone: (pod: KeptPod, signal: AbortSignal) => Promise<boolean>;
  readonly logger: Logger;
}

const LOOK_MS = 25;
const ASK_WITHIN_MS = 5000;

const until = async (device: PodDevice, isSo: () => boolean, signal: AbortSignal): Promise<void> => {
  while (!isSo()) {
    if (signal.aborted) throw new Error(`pod ${device.pod.namespace}/${device.pod.podName}: ${device.problem}`);
    await delay(LOOK_MS);
  }
};

/** Whether a pod is still to be a device, by its record. */
const createRecords = ({ recordOf, areRecordsKnown, isRecordGone, isPodGone }: PodDevicesParts) => {
  const recordFor = ({ namespace, podName, podUID }: KeptPod): TailnetDevice | undefined => {
    const record = recordOf(namespace, podName);
    // One that is being deleted is none: its device is being removed.
    return record?.spec.podUID === podUID && record.metadata.deletionTimestamp === undefined ? record : undefined;
  };
  const hasLostRecord = ({ pod }: PodDevice): boolean =>
    areRecordsKnown() && pod.device !== undefined && !recordFor(pod);
  const isOver = async (device: PodDevice): Promise<boolean> => {
    const { pod } = device;
    if (recordFor(pod) || !areRecordsKnown()) return false;
    const isGone = hasLostRecord(device) ? isRecordGone : isPodGone;
    return isGone(pod, AbortSignal.timeout(ASK_WITHIN_MS));
  };
  return { recordFor, hasLostRecord, isOver };
};

/** Ends devices, and knows which have not ended yet. */
const createEnding = ({ kept, keeper, logger }: PodDevicesParts, devices: Map<string, PodDevice>) => {
  const ending = new Set<string>();
  const working = new Set<string>();
  /** Never rejects: what fails is done again. */
  const work = async (podUID: string): Promise<void> => {
    working.add(podUID);
    try {
      await devices.get(podUID)?.stop();
      devices.delete(podUID);
      keeper.ask(podUID, undefined);
      // Its process may write there until it has ended.
      while (!keeper.hasEnded(podUID)) await delay(LOOK_MS);
      kept.remove(podUID);
      ending.delete(podUID);
      logger.info({ pod: podUID }, 'its device is removed');
    } catch (error) {
      logger.error({ pod: podUID, err: error }, 'what is kept of a pod is not removed yet');
    } finally {
      working.delete(podUID);
    }
  };
  return {
    ending: ending as ReadonlySet<string>,
    end: (podUID: string): void => {
      if (ending.has(podUID)) return;
      ending.add(podUID);
      void work(podUID);
    },
    /** What could not be removed before. */
    endLeft: (): void => {
      for (const podUID of ending) if (!working.has(podUID)) void work(podUID);
    },
  };
};

export const createPodDevices = (parts: PodDevicesParts): PodDevices => {
  const { kept, keeper, logger } = parts;
  const devices = new Map<string, PodDevice>();
  const { recordFor, hasLostRecord, isOver } = createRecords(parts);
  const open = (pod: KeptPod, isAdded = false): PodDevice => {
    const { cluster, writeStatus, onUp } = parts;
    const local = createLocalApi(kept.socketOf(pod.podUID));
    const keep = (changed: KeptPod): void => kept.write(changed);
    const asking = { local, keeper, recordOf: recordFor, cluster, writeStatus, logger };
    const device = createPodDevice({ ...asking, pod, isAdded, keep, onUp });
    devices.set(pod.podUID, device);
    return device;
  };
  for (const pod of kept.read((podUID, why) =>
    logger.error({ pod: podUID, problem: why }, 'cannot read what is kept of a pod; its device stays as it is'),
  ))
    open(pod);

  const { ending, end, endLeft } = createEnding(parts, devices);
  const byContainer = (containerId: string): PodDevice | undefined =>
    devices.values().find(({ pod }) => pod.container?.id === containerId);

  return {
    startOf: (podUID) => devices.get(podUID)?.pod.start,
    async add({ podUID, namespace, podName, container }, start, signal) {
      const pod = { podUID, namespace, podName, start, container, addresses: [] };
      // What is removed is that of this pod, whichever device has made it.
      if (ending.has(podUID)) throw new Error(`pod ${namespace}/${podName}: its former device is being removed`);
      const known = devices.get(podUID);
      if (known) known.update({ container, start });
      else kept.write(pod);
      const device = known ?? open(pod, true);
      await until(device, () => device.hasNetwork, signal);
      if (start === 'WaitForDevice') await until(device, () => device.isUp, signal);
      return device;
    },
    release: (containerId) => byContainer(containerId)?.release(),
    byContainer,
    list: () => [...devices.values()],
    observe() {
      const all = [...devices.values()];
      const over = all.filter((device) => hasLostRecord(device)).map(({ pod }) => pod.podUID);
      const pendingRemovals = new Set([...ending, ...over]).size;
      return {
        devices: all.filter(({ pod }) => !ending.has(pod.podUID)).map(({ observed }) => observed),
        pendingRemovals,
      };
    },
    onRecord({ spec }) {
      devices.get(spec.podUID)?.trigger();
    },
    async tidy() {
      endLeft();
      for (const device of devices.values()) {
        try {
          if (await isOver(device)) end(device.pod.podUID);
        } catch (error) {
          logger.debug({ pod: device.pod.podUID, err: error }, 'cannot tell whether a pod is gone');
        }
      }
    },
    async stop() {
      await Promise.all([...devices.values()].map((device) => device.stop()));
    },
  };
};
