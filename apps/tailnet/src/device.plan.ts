import type { TailnetDevice } from '@unbounded/crds';
import { containsAddress, formatAddress, formatPrefix, parseAddress, type Prefix } from '@unbounded/ip';
import type { DeviceUnit } from '@unbounded/keeper-protocol';
import { planPodRoutes, POD_ROUTE_TABLE, type StartPolicy, TAILNET_PREFIXES } from '@unbounded/tailnet';
import type { LocalStatus } from './local-api.ts';

/** What is to be done for a pod that is a device: what its keeper is asked for, what its record says, and whether it logs in. */

/** A pod of this node, as its container's ADD told it; kept in a file. */
export interface KeptPod {
  readonly podUID: string;
  readonly namespace: string;
  readonly podName: string;
  readonly start: StartPolicy;
  /** Absent: it has no container at the moment. */
  readonly container?: { readonly id: string; readonly netns: string };
  /** Of its device, when it was Running last. */
  readonly addresses: readonly string[];
  /** As its record has it; absent: there was none yet. While records are not known the device goes on by this. */
  readonly device?: { readonly hostName: string; readonly controlURL: string };
}

type Status = NonNullable<TailnetDevice['status']>;
/** What the node writes of it. */
type NodeStatus = Pick<Status, 'keyRequest' | 'reportedID' | 'name' | 'addresses' | 'state' | 'path' | 'message'>;
/** A JSON Merge Patch (RFC 7396): null takes a field away. */
export type NodeStatusPatch = { readonly [K in keyof NodeStatus]?: NodeStatus[K] | null };

export interface DeviceSituation {
  readonly pod: KeptPod;
  readonly record: TailnetDevice | undefined;
  /** Undefined: its process does not answer. */
  readonly local: LocalStatus | undefined;
  /** Blocks of the cluster. */
  readonly cluster: readonly Prefix[];
  /** Of the key pair to which the next key is to be sealed. */
  readonly publicKey: string;
  /** It was given a key a moment ago. */
  readonly isLoggingIn: boolean;
}

export interface DeviceStep {
  /** Undefined: the keeper has nothing to do for it. */
  readonly unit: DeviceUnit | undefined;
  readonly addresses: readonly string[];
  readonly device: KeptPod['device'];
  /** Undefined: the record says what is so. */
  readonly patch: NodeStatusPatch | undefined;
  /** It is to log in by this. */
  readonly sealedKey: string | undefined;
}

const STATES: Readonly<Record<LocalStatus['state'], NonNullable<Status['state']>>> = {
  ...{ NoState: 'Starting', Starting: 'Starting', InUseOtherUser: 'Stopped', Stopped: 'Stopped' },
  ...{ NeedsLogin: 'NeedsLogin', NeedsMachineAuth: 'NeedsApproval', Running: 'Running' },
};
/** @param local undefined: its process does not answer */
export const deviceStateOf = (local: LocalStatus | undefined): NonNullable<Status['state']> =>
  STATES[local?.state ?? 'Starting'];

const LONGEST_MESSAGE = 512;
/** The control server has taken them away. */
const WITHOUT_ADDRESSES: ReadonlySet<LocalStatus['state']> = new Set(['NeedsLogin', 'NeedsMachineAuth', 'Stopped']);

const familyOf = (address: string): number => parseAddress(address).family;

/**
 * The control server gives them, and is believed only in so far: an address of the cluster on a pod's interface would draw the pod's
 * own packets for it.
 */
const usable = (
  addresses: readonly string[],
  cluster: readonly Prefix[],
): { readonly good: string[]; readonly bad: string[] } => {
  const isGood = (text: string): boolean => {
    try {
      const address = parseAddress(text);
      const isIn = (prefixes: readonly Prefix[]): boolean =>
        prefixes.some((prefix) => containsAddress(prefix, address));
      return isIn(TAILNET_PREFIXES) && !isIn(cluster);
    } catch {
      return false;
    }
  };
  const good = addresses.filter(isGood).map((text) => formatAddress(parseAddress(text)));
  const firsts = good.filter((text, at) => good.findIndex((other) => familyOf(other) === familyOf(text)) === at);
  return { good: firsts, bad: addresses.filter((text) => !isGood(text)) };
};

const addressesNow = ({ pod, local }: DeviceSituation, good: readonly string[]): readonly string[] => {
  if (local?.state === 'Running' && good.length > 0) return good;
  return local && WITHOUT_ADDRESSES.has(local.state) ? [] : pod.addresses;
};

const unitOf = (
  { pod, cluster }: DeviceSituation,
  device: KeptPod['device'],
  addresses: readonly string[],
): DeviceUnit | undefined => {
  if (!pod.container) return undefined;
  const { rules, routes } = planPodRoutes({ cluster });
  return {
    ...{ podUID: pod.podUID, netns: pod.container.netns },
    ...(device && { device }),
    network: {
      addresses,
      rules: rules.map(({ to, ...rule }) => ({ ...rule, to: formatPrefix(to) })),
      routes: routes.map(({ to, ...route }) => ({ ...route, to: formatPrefix(to), table: POD_ROUTE_TABLE })),
    },
  };
};

/** By a new key: it has none, or the registrar says that the device it takes itself for is no more. */
const needsKey = ({ record, local }: DeviceSituation): boolean =>
  local?.state === 'NeedsLogin' || (local?.id !== undefined && record?.status?.goneID === local.id);

const messageOf = (situation: DeviceSituation, bad: readonly string[]): string | undefined => {
  const { local } = situation;
  if (!local) return 'its process does not answer';
  if (bad.length > 0)
    return `the control server gives it ${bad.join(', ')}: must be addresses of a tailnet, and none of the cluster`;
  if (needsKey(situation)) return 'it waits for a key from tailnet-registrar';
  return local.state === 'Running' ? undefined : local.health.join('; ') || undefined;
};

/** Of the peers it talks with most are reached so. */
const pathOf = ({ paths }: LocalStatus): string | undefined => {
  const counts = Map.groupBy(paths ?? [], (path) => path);
  return [...counts].toSorted(([, a], [, b]) => b.length - a.length)[0]?.[0];
};

const statusOf = (situation: DeviceSituation, found: ReturnType<typeof usable>): NodeStatus => {
  const { record, local, publicKey, isLoggingIn } = situation;
  const { good, bad } = found;
  const message = messageOf(situation, bad)?.slice(0, LONGEST_MESSAGE);
  const before = record?.status;
  // Of a process that does not answer what is known stays.
  const { id = before?.reportedID, dnsName = before?.name } = local ?? {};
  const path = local?.paths ? pathOf(local) : before?.path;
  const state = deviceStateOf(local);
  const hasAddresses = good.length > 0 && bad.length === 0;
  const addresses = addressesNow(situation, good);
  return {
    state: state === 'Running' && !hasAddresses ? 'Starting' : state,
    ...(message === undefined ? {} : { message }),
    ...(id === undefined ? {} : { reportedID: id }),
    ...(dnsName === undefined ? {} : { name: dnsName }),
    ...(addresses.length > 0 ? { addresses } : {}),
    ...(path === undefined ? {} : { path }),
    ...(needsKey(situation) && !isLoggingIn ? { keyRequest: { publicKey } } : {}),
  };
};

const FIELDS = ['keyRequest', 'reportedID', 'name', 'addresses', 'state', 'path', 'message'] as const;

const patchOf = (before: Status | undefined, now: NodeStatus): NodeStatusPatch | undefined => {
  const changed = FIELDS.filter((field) => JSON.stringify(before?.[field]) !== JSON.stringify(now[field]));
  if (changed.length === 0) return undefined;
  return Object.fromEntries(changed.map((field) => [field, now[field] ?? null])) as NodeStatusPatch;
};

export const planDeviceStep = (situation: DeviceSituation): DeviceStep => {
  const { record, local, cluster, publicKey, isLoggingIn } = situation;
  const found = usable(local?.addresses ?? [], cluster);
  const addresses = addressesNow(situation, found.good);
  const key = record?.status?.sealedKey;
  const isForUs = needsKey(situation) && !isLoggingIn && key?.publicKey === publicKey;
  const device = record ? { hostName: record.spec.hostName, controlURL: record.spec.controlURL } : situation.pod.device;
  return {
    unit: unitOf(situation, device, addresses),
    ...{ addresses, device },
    patch: record && patchOf(record.status, statusOf(situation, found)),
    sealedKey: isForUs ? key.sealed : undefined,
  };
};
