import type { TailnetDevice } from '@unbounded/crds';
import type { Prefix } from '@unbounded/ip';
import type { DeviceUnit } from '@unbounded/keeper-protocol';
import { createKeyReceiver, type KeyReceiver } from '@unbounded/tailnet';
import type { Logger } from '@unbounded/telemetry';
import { type DeviceStep, type KeptPod, type NodeStatusPatch, planDeviceStep } from './device.plan.ts';
import type { KeeperFiles } from './keeper-files.ts';
import type { DeviceName, LocalApi, LocalStatus } from './local-api.ts';

/** One look at a pod that is a device: what is so, and what the plan says is done about it. */

export interface DeviceLookParts {
  readonly local: LocalApi;
  readonly keeper: KeeperFiles;
  readonly recordOf: (pod: KeptPod) => TailnetDevice | undefined;
  /** Undefined: they are not known yet. A plan without them would let packets of the cluster go by the device. */
  readonly cluster: () => readonly Prefix[] | undefined;
  /** @throws Error; it is done again later */
  readonly writeStatus: (record: TailnetDevice, patch: NodeStatusPatch) => Promise<void>;
  readonly logger: Logger;
  readonly now: () => number;
}

/** What a look has found. */
export interface Seen {
  readonly status: LocalStatus | undefined;
  readonly record: TailnetDevice | undefined;
  readonly unit: DeviceUnit | undefined;
}

export interface DeviceLook {
  readonly seen: Seen;
  /**
   * @param keep takes what is to be kept of the pod, before anything is asked for by it
   * @returns whether there was something to do. @throws Error: it could not be done
   */
  look(pod: KeptPod, keep: (pod: KeptPod) => void): Promise<boolean>;
}

/** A key that was given is not asked for again before this, nor another one. */
const LOGIN_MS = 15_000;
/** Of peers there are many. */
const PATHS_EVERY_MS = 30_000;

/** A key pair for the next key: each opens one. */
const createKeys = () => {
  let receiver: KeyReceiver | undefined;
  return {
    current: async (): Promise<KeyReceiver> => (receiver ??= await createKeyReceiver()),
    used: () => void (receiver = undefined),
  };
};

/** Undefined: the process does not answer; it starts, or the keeper starts it again. */
const createAsking = ({ local, now }: Pick<DeviceLookParts, 'local' | 'now'>) => {
  let pathsAtMs = Number.NEGATIVE_INFINITY;
  return async (): Promise<LocalStatus | undefined> => {
    const status = await local.status().catch(() => undefined);
    if (status?.state !== 'Running' || now() - pathsAtMs < PATHS_EVERY_MS) return status;
    pathsAtMs = now();
    // In a large tailnet the answer with all peers may be too long, or come too late.
    return local.status({ withPaths: true }).catch(() => status);
  };
};

export const createDeviceLook = (parts: DeviceLookParts): DeviceLook => {
  const { local, keeper, recordOf, cluster, writeStatus, logger, now } = parts;
  const keys = createKeys();
  const ask = createAsking(parts);
  let seen: Seen = { status: undefined, record: undefined, unit: undefined };
  let loggedInAtMs = Number.NEGATIVE_INFINITY;

  const logIn = async (sealed: string, podUID: string, device: DeviceName): Promise<void> => {
    const key = await (await keys.current()).open(sealed, podUID);
    keys.used();
    loggedInAtMs = now();
    await local.logIn(key, device);
    logger.info({ pod: podUID }, 'logging in by a key of the registrar');
  };
  const plan = async (
    pod: KeptPod,
    blocks: readonly Prefix[],
  ): Promise<DeviceStep & Pick<Seen, 'status' | 'record'>> => {
    const record = recordOf(pod);
    const status = seen.unit?.device ? await ask() : undefined;
    const { publicKey } = await keys.current();
    const isLoggingIn = now() - loggedInAtMs < LOGIN_MS;
    const step = planDeviceStep({ pod, record, local: status, cluster: blocks, publicKey, isLoggingIn });
    return { ...step, status, record };
  };

  return {
    get seen() {
      return seen;
    },
    async look(pod, keep) {
      const blocks = cluster();
      if (!blocks) return false;
      const { status, record, unit, addresses, device, patch, sealedKey } = await plan(pod, blocks);
      keep({ ...pod, addresses, ...(device && { device }) });
      seen = { status, record, unit };
      keeper.ask(pod.podUID, unit);
      if (sealedKey !== undefined && device) await logIn(sealedKey, pod.podUID, device);
      if (patch && record) await writeStatus(record, patch);
      return patch !== undefined || sealedKey !== undefined;
    },
  };
};
