import { setTimeout as delay } from 'node:timers/promises';
import type { TailnetDevice } from '@unbounded/crds';
import type { Logger } from '@unbounded/telemetry';
import type { StartPolicy } from '@unbounded/tailnet';
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
  /** The record of the pod has changed. */
  onRecord(record: TailnetDevice): void;
  /** Ends what has no record any more, and pods that are gone and never had one. */
  tidy(): Promise<void>;
  /** The devices go on. */
  stop(): Promise<void>;
}

export interface PodDevicesParts extends Pick<PodDeviceParts, 'cluster' | 'writeStatus'> {
  readonly kept: KeptPods;
  readonly keeper: KeeperFiles;
  /** Of the namespace and name; whichever pod it is of. */
  readonly recordOf: (namespace: string, podName: string) => TailnetDevice | undefined;
  /** What is not there of records is not there. */
  readonly areRecordsKnown: () => boolean;
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

export const createPodDevices = (parts: PodDevicesParts): PodDevices => {
  const { kept, keeper, recordOf, areRecordsKnown, isPodGone, logger } = parts;
  const devices = new Map<string, PodDevice>();
  const recordFor = ({ namespace, podName, podUID }: KeptPod): TailnetDevice | undefined => {
    const record = recordOf(namespace, podName);
    // One that is being deleted is none: its device is being removed.
    return record?.spec.podUID === podUID && record.metadata.deletionTimestamp === undefined ? record : undefined;
  };
  const open = (pod: KeptPod): PodDevice => {
    const { cluster, writeStatus } = parts;
    const local = createLocalApi(kept.socketOf(pod.podUID));
    const keep = (changed: KeptPod): void => kept.write(changed);
    const device = createPodDevice({ pod, local, keeper, recordOf: recordFor, cluster, writeStatus, keep, logger });
    devices.set(pod.podUID, device);
    return device;
  };
  for (const pod of kept.read((podUID, why) =>
    logger.error({ pod: podUID, problem: why }, 'cannot read what is kept of a pod; its device stays as it is'),
  ))
    open(pod);

  const end = async (device: PodDevice): Promise<void> => {
    const { podUID } = device.pod;
    await device.stop();
    devices.delete(podUID);
    keeper.ask(podUID, undefined);
    // Its process may write there until it has ended.
    while (keeper.stateOf(podUID) !== undefined) await delay(LOOK_MS);
    kept.remove(podUID);
    logger.info({ pod: podUID }, 'its device is removed');
  };
  const isOver = async ({ pod }: PodDevice): Promise<boolean> => {
    if (recordFor(pod) || !areRecordsKnown()) return false;
    return pod.device !== undefined || (await isPodGone(pod, AbortSignal.timeout(ASK_WITHIN_MS)));
  };

  const byContainer = (containerId: string): PodDevice | undefined =>
    devices.values().find(({ pod }) => pod.container?.id === containerId);

  return {
    startOf: (podUID) => devices.get(podUID)?.pod.start,
    async add({ podUID, namespace, podName, container }, start, signal) {
      const pod = { podUID, namespace, podName, start, container, addresses: [] };
      const known = devices.get(podUID);
      if (known) known.update({ container, start });
      else kept.write(pod);
      const device = known ?? open(pod);
      await until(device, () => device.hasNetwork, signal);
      if (start === 'WaitForDevice') await until(device, () => device.isUp, signal);
      return device;
    },
    release: (containerId) => byContainer(containerId)?.update({ container: undefined }),
    byContainer,
    list: () => [...devices.values()],
    onRecord({ spec }) {
      devices.get(spec.podUID)?.trigger();
    },
    async tidy() {
      for (const device of devices.values()) {
        try {
          if (await isOver(device))
            void end(device).catch((error: unknown) =>
              logger.error({ err: error }, 'cannot remove what is kept of a pod'),
            );
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
