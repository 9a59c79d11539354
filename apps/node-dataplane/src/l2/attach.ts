import { type Network, networkKind, type NetworkEndpoint, podAnnotations } from '@unbounded/crds';
import { containsAddress, parseAddress, parsePrefix } from '@unbounded/ip';
import { type Cluster, clientOf, isNotFound, namespaces } from '@unbounded/kube';
import { type AskedNetwork, attachmentOf, endpointKey, parsePodNetworks, readAskedNetwork } from '@unbounded/l2';
import type { HookHandlers, ResultAddition } from '../attachment/hook.port.ts';
import { createKeyedQueue } from '../kernel/in-turn.ts';
import type { PodAttachment } from '../attachment/pods.ts';
import type { Claims } from './claims.ts';
import { endpointKeyOf, portName } from './names.ts';
import type { Ports } from './ports.ts';

/** Pods that join Networks by their annotation: an endpoint and a port for each, and ADD returns when the kernel enforces what they may do. */

type AddedPod = Parameters<NonNullable<HookHandlers['add']>>[0];

export interface AttachParts {
  readonly cluster: Cluster;
  readonly claims: Claims;
  readonly ports: Ports;
  /** MACs and addresses of the network, as far as they are known here. */
  readonly takenIn: (network: string, signal: AbortSignal) => Promise<Iterable<string>>;
  /** Whether the same pod is attached by another container, too. */
  readonly hasSuccessor: (pod: PodAttachment) => boolean;
  /** Of a pod of this node, as they are known here. */
  readonly endpointsOf: (podUid: string) => readonly NetworkEndpoint[];
  /** As the controller has numbered it; undefined: not yet. */
  readonly mtuOf: (network: string) => number | undefined;
  readonly isInForce: (endpoint: NetworkEndpoint) => boolean;
  /** NAMESPACE/NAME of another endpoint of this node whose port has the name that the port of this one would have. */
  readonly namesakeOf: (endpoint: string) => string | undefined;
  /** Behind the pass after which it holds. */
  readonly until: (condition: () => boolean, signal: AbortSignal) => Promise<void>;
  /** A pass is due. */
  readonly trigger: () => void;
}

export interface Attaching {
  readonly handlers: Required<Pick<HookHandlers, 'add' | 'remove' | 'check'>>;
  /** Whether the pod of an endpoint is being attached: without a port it is nobody's leftover. */
  isUnderWay(endpoint: string): boolean;
  /** Releases an endpoint that had no port at the last look, unless its pod has come back since. @throws ApiError, TransportError */
  releaseLeftover(endpoint: NetworkEndpoint, signal: AbortSignal): Promise<void>;
}

const prefixLengthOf = ({ spec }: Network, address: string): number => {
  const parsed = parseAddress(address);
  return spec.prefixes.map(parsePrefix).find((prefix) => containsAddress(prefix, parsed))?.length ?? 128;
};

/** Of an interface that a configuration of its own makes; the pod's first one may be such. */
const NOT_LOOPBACK: ReadonlySet<string> = new Set(['lo']);

const withoutLength = (ips: unknown): unknown =>
  Array.isArray(ips) ? ips.map((ip: unknown) => (typeof ip === 'string' ? ip.split('/')[0] : ip)) : ips;

/** By the configuration that made it, or by its annotation. @throws RangeError, ApiError, TransportError */
const askedBy = async (pod: AddedPod): Promise<readonly AskedNetwork[]> => {
  const { joins, interface: device } = pod;
  if (!joins) return parsePodNetworks((await pod.annotations())[podAnnotations.networks] ?? '');
  const { configuration, network, segment, mac, ips } = joins;
  const fields = { network, segment, mac, addresses: withoutLength(ips), interface: device };
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  const where = `CNI configuration "${configuration}"`;
  return [readAskedNetwork(given, { where, takenInterfaces: NOT_LOOPBACK })];
};

const additionOf = (network: Network, { spec }: NetworkEndpoint, netns: string): ResultAddition => {
  const addresses = spec.addresses.map((address) => `${address}/${prefixLengthOf(network, address)}`);
  return {
    interfaces: [{ name: spec.interface, mac: spec.mac, sandbox: netns }],
    ips: addresses.map((address) => ({ address, interface: 0 })),
    settle: [{ name: spec.interface, addresses }],
  };
};

const joined = (additions: readonly ResultAddition[]): ResultAddition => ({
  interfaces: additions.flatMap(({ interfaces = [] }) => interfaces),
  ips: additions.flatMap(({ ips = [] }, at) => ips.map((ip) => ({ ...ip, interface: at }))),
  settle: additions.flatMap(({ settle = [] }) => settle),
});

/** @throws Error that says why the pod may not */
const createPermission = (cluster: Cluster) => {
  const [networks, ofNamespaces] = [clientOf(cluster, networkKind), cluster.client(namespaces)];
  return async ({ network: name }: AskedNetwork, namespace: string, signal: AbortSignal) => {
    const [network, { metadata }] = await Promise.all([
      networks.get(name, { signal }).catch((error: unknown) => {
        if (isNotFound(error))
          throw new Error(`there is no Network "${name}": name one of those that there are, or make it`);
        throw error;
      }),
      ofNamespaces.get(namespace, { signal }),
    ]);
    const { mayAttach, isTrusted } = attachmentOf(network, metadata.labels ?? {});
    if (!mayAttach)
      throw new Error(
        `Network ${name}: spec.namespaceSelector does not select namespace "${namespace}": label the namespace, or change the selector`,
      );
    return { network, isTrusted };
  };
};

/** A name has a part of a hash: who looks for a second key of that hash must not get the port of the first. @throws Error */
const refuseNamesake = (key: string, other: string | undefined): void => {
  if (other === undefined) return;
  throw new Error(
    `endpoint ${key} would have the device of endpoint ${other}: give the pod or the interface another name`,
  );
};

/** Which pod has which endpoints, by its UID, as far as this process attaches it; those of an earlier one are found by their missing port. */
const createHolders = () => {
  const underWay = new Map<string, string>();
  const made = new Map<string, NetworkEndpoint[]>();
  const isSame = (a: NetworkEndpoint, b: NetworkEndpoint): boolean => endpointKey(a) === endpointKey(b);
  const forget = (uid: string, isGone: (endpoint: NetworkEndpoint) => boolean): void => {
    const left = (made.get(uid) ?? []).filter((one) => !isGone(one));
    if (left.length > 0) made.set(uid, left);
    else made.delete(uid);
  };
  const madeFor = (endpoint: NetworkEndpoint): string | undefined =>
    [...made].find(([, own]) => own.some((one) => isSame(one, endpoint)))?.[0];
  return {
    forget,
    isUnderWay: (key: string): boolean => underWay.has(key),
    begin: (keys: readonly string[], uid: string) => keys.forEach((key) => underWay.set(key, uid)),
    ended: (keys: readonly string[]) => keys.forEach((key) => underWay.delete(key)),
    of: (uid: string): readonly NetworkEndpoint[] => made.get(uid) ?? [],
    /** A pod that was deleted by force may end after another of its name has come: the port and the entries are of that one by now. */
    isAnothers: (endpoint: NetworkEndpoint, uid: string): boolean =>
      (underWay.get(endpointKey(endpoint)) ?? madeFor(endpoint) ?? uid) !== uid,
    add(uid: string, endpoint: NetworkEndpoint): void {
      for (const other of [...made.keys()]) forget(other, (one) => isSame(one, endpoint));
      made.set(uid, [...(made.get(uid) ?? []), endpoint]);
    },
  };
};

/** The end of a pod: of one interface, where a configuration of its own made it; else of all that it has by its annotation. */
const createRemoval = (
  { claims, ports, trigger, ...parts }: AttachParts,
  holders: ReturnType<typeof createHolders>,
  inTurnOf: ReturnType<typeof createKeyedQueue>,
) => {
  const remove = async (pod: PodAttachment, signal?: AbortSignal): Promise<void> => {
    const { uid, joins, interface: device } = pod;
    // A pod whose sandbox was made anew: what it has now is that of the later container.
    if (parts.hasSuccessor(pod)) return;
    const isOfThis = ({ spec }: NetworkEndpoint): boolean => (joins === undefined) !== (spec.interface === device);
    const known = [...parts.endpointsOf(uid), ...holders.of(uid)];
    const endpoints = [...new Map(known.map((one) => [endpointKey(one), one])).values()].filter(isOfThis);
    const unlessAnothers = async (one: NetworkEndpoint, work: () => Promise<void>): Promise<void> => {
      if (holders.isAnothers(one, uid)) return; // nor does the end of this one wait for it
      await inTurnOf(endpointKey(one), async () => (holders.isAnothers(one, uid) ? undefined : work()));
    };
    // What cannot be released now has no port, and is found by that.
    holders.forget(uid, isOfThis);
    for (const one of endpoints) await unlessAnothers(one, () => ports.remove(portName(endpointKey(one))));
    for (const one of endpoints) await unlessAnothers(one, () => claims.release(one, signal));
    trigger();
  };
  return remove;
};

export const createAttaching = (parts: AttachParts): Attaching => {
  const { claims, ports, mtuOf, isInForce, until, trigger } = parts;
  const permission = createPermission(parts.cluster);
  const inTurnOf = createKeyedQueue();
  const holders = createHolders();
  const remove = createRemoval(parts, holders, inTurnOf);

  const join = async (pod: AddedPod, asked: AskedNetwork, signal: AbortSignal): Promise<ResultAddition> => {
    const { namespace, name, uid, netns } = pod;
    if (uid === '') throw new Error('CNI_ARGS has no K8S_POD_UID: an endpoint is owned by its pod');
    const { network, isTrusted } = await permission(asked, namespace, signal);
    const key = endpointKeyOf(pod, asked.interface);
    refuseNamesake(key, parts.namesakeOf(key));
    const taken = await parts.takenIn(asked.network, signal);
    const endpoint = await inTurnOf(key, () =>
      claims.claim({ namespace, pod: name, podUid: uid, asked, network, isTrusted, taken }, signal),
    );
    holders.add(uid, endpoint);
    trigger();
    // The first endpoint of a node may make the MTU smaller.
    await until(() => mtuOf(asked.network) !== undefined, signal);
    const device = portName(key);
    const mtuBytes = mtuOf(asked.network)!;
    await ports.create({ device, netns, interface: asked.interface, mac: endpoint.spec.mac, mtuBytes });
    trigger();
    await until(() => isInForce(endpoint), signal);
    return additionOf(network, endpoint, netns);
  };

  return {
    isUnderWay: (endpoint) => holders.isUnderWay(endpoint),
    releaseLeftover: (endpoint, signal) =>
      inTurnOf(endpointKey(endpoint), async () => {
        const key = endpointKey(endpoint);
        if (holders.isUnderWay(key) || (await ports.stateOf(portName(key))) !== 'gone') return;
        await claims.release(endpoint, signal);
      }),
    handlers: {
      async add(pod, signal) {
        const asked = await askedBy(pod);
        if (asked.length === 0) return;
        const keys = asked.map((one) => endpointKeyOf(pod, one.interface));
        holders.begin(keys, pod.uid);
        try {
          const additions: ResultAddition[] = [];
          for (const one of asked) additions.push(await join(pod, one, signal));
          return joined(additions);
        } finally {
          holders.ended(keys);
        }
      },
      remove,
      async check(pod) {
        if (!pod.joins) return undefined;
        const state = await ports.stateOf(portName(endpointKeyOf(pod, pod.interface)));
        return state === 'up' ? undefined : `interface ${pod.interface}: its port is ${state}`;
      },
    },
  };
};
