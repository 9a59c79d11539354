import { TAILNET_DEVICE_FINALIZER, type TailnetDevice } from '@unbounded/crds';

/**
 * What is to be done about the device of a record at the control server. Whatever the node says in the status decides only what is
 * looked at: what is done follows from what the record and the control server say.
 */

/** For which a key is good. */
export const KEY_SECONDS = 300;
/** A key that is good for less is no use any more to a node that has not logged in yet. */
const LEAST_VALIDITY_MS = 30_000;
/** Clocks of API server and control server differ. */
const CLOCK_DIFFERENCE_MS = 60_000;

export interface RemovalStep {
  readonly kind: 'remove';
  readonly keyID?: string;
  readonly deviceID?: string;
  /** Its node may have logged in without telling, or more than once: what it left is looked for. */
  readonly isSearched: boolean;
}

export type RegistrationStep =
  /** The record ends: key and device go, then the finalizer. */
  | RemovalStep
  /** Its node says that the device is this one; it may be that of before. */
  | { readonly kind: 'bind'; readonly deviceID: string }
  | { readonly kind: 'giveKey'; readonly publicKey: string };

export interface RegistrationPlan {
  /** In this order; when the device is bound, nothing else is left to do. */
  readonly steps: readonly RegistrationStep[];
  /** When the key that was given is no longer good, milliseconds from now. */
  readonly againMs?: number;
}

const isOurs = ({ metadata }: TailnetDevice): boolean =>
  metadata.finalizers?.includes(TAILNET_DEVICE_FINALIZER) === true;

/** Each key is good for one device. */
const removal = ({ status }: TailnetDevice): RemovalStep => ({
  kind: 'remove',
  ...(status?.keyID === undefined ? {} : { keyID: status.keyID }),
  ...(status?.deviceID === undefined ? {} : { deviceID: status.deviceID }),
  isSearched: (status?.keysGiven ?? 0) > (status?.deviceID === undefined ? 0 : 1),
});

/** A node whose device is bound asks in vain, unless the device says that it has no key any more. */
const asksForKey = ({ status }: TailnetDevice): boolean =>
  status?.keyRequest !== undefined && (status.deviceID === undefined || status.state === 'NeedsLogin');

/** By a key that was given since, and is the same device: the control server knows it by its machine. */
const hasLoggedInAgain = ({ status }: TailnetDevice): boolean =>
  status?.state === 'Running' && status.keyRequest === undefined && status.sealedKey !== undefined;

const validForMs = ({ status }: TailnetDevice, nowMs: number): number => {
  const { keyRequest, sealedKey } = status ?? {};
  if (!sealedKey || sealedKey.publicKey !== keyRequest?.publicKey) return 0;
  const leftMs = Date.parse(sealedKey.expiresAt) - nowMs;
  // No key is good for so long: the clock was set back meanwhile, and how old the key is nobody knows.
  if (Number.isNaN(leftMs) || leftMs > KEY_SECONDS * 1000 + CLOCK_DIFFERENCE_MS) return 0;
  return Math.max(leftMs - LEAST_VALIDITY_MS, 0);
};

export const planRegistration = (record: TailnetDevice, nowMs: number): RegistrationPlan => {
  const { metadata, status } = record;
  if (metadata.deletionTimestamp !== undefined) return { steps: isOurs(record) ? [removal(record)] : [] };
  const steps: RegistrationStep[] = [];
  if (status?.reportedID !== undefined && (status.reportedID !== status.deviceID || hasLoggedInAgain(record)))
    steps.push({ kind: 'bind', deviceID: status.reportedID });
  if (!asksForKey(record)) return { steps };
  const againMs = validForMs(record, nowMs);
  if (againMs > 0) return { steps, againMs };
  return { steps: [...steps, { kind: 'giveKey', publicKey: status!.keyRequest!.publicKey }] };
};

/** A device as the control server has it. */
export interface ListedDevice {
  readonly id: string;
  readonly hostName: string;
  readonly tags: readonly string[];
  /** RFC 3339; empty: not known. */
  readonly created: string;
  /** RFC 3339; absent: never. */
  readonly expires?: string;
}

const sameSet = (a: readonly string[], b: readonly string[]): boolean =>
  [...new Set(a)].sort().join() === [...new Set(b)].sort().join();

/** Why a device is not the one of a record; undefined: it is. Name and tags of a device follow from the key by which it logged in. */
export const strangenessOf = ({ spec, metadata }: TailnetDevice, device: ListedDevice): string | undefined => {
  if (device.hostName !== spec.hostName)
    return `its host name is ${JSON.stringify(device.hostName)}, not ${spec.hostName}`;
  if (!sameSet(device.tags, spec.tags))
    return `its tags are ${device.tags.join(', ') || 'none'}, not ${spec.tags.join(', ')}`;
  const [created, recorded] = [device.created, metadata.creationTimestamp ?? ''].map(Date.parse) as [number, number];
  if (Number.isNaN(created)) return 'when it was made is not known';
  if (created < recorded - CLOCK_DIFFERENCE_MS)
    return `it was made at ${device.created}, before its record (${metadata.creationTimestamp})`;
  return undefined;
};

/** Whether its node has to log in anew. */
export const hasExpired = ({ expires }: ListedDevice, nowMs: number): boolean =>
  expires !== undefined && Date.parse(expires) <= nowMs;

/**
 * Devices that nobody but the node of the record can have made: with a key of the record, and without telling, or telling in vain.
 * @param bound IDs of the devices of other records
 */
export const leftBehind = (
  record: TailnetDevice,
  devices: readonly ListedDevice[],
  bound: ReadonlySet<string>,
): readonly ListedDevice[] =>
  devices.filter((device) => !bound.has(device.id) && strangenessOf(record, device) === undefined);
