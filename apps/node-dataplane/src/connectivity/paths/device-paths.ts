import type { PathProbe } from '@unbounded/health';
import type { Problem } from '@unbounded/topology';
import { type DeviceState, openKernelDevice, openUserspaceDevice, type WireGuardDevice } from '@unbounded/wireguard';
import { createEndpoints, type Endpoints } from './endpoints.ts';
import type { Correspondent } from './exchange.ts';
import type { PathDevice, PathPeer, PathReport } from './messages.ts';
import { monotonicMs } from './path-times.ts';
import { createPath, type Found, type Target, type WatchedPath } from './path.ts';
import { derivePathKeys, type PathKeys } from './path-keys.ts';
import type { Way } from './way.ts';

/** The paths of one WireGuard interface, one for each of its peers. */
export interface DevicePaths {
  readonly plan: PathDevice;
  /** Watches the peers of the plan; those that are new as WireGuard shows them. */
  apply(plan: PathDevice, given: Given): Promise<readonly Problem[]>;
  lanes(): Correspondent[];
  /** Public keys of all peers. */
  peers(): string[];
  stop(): Promise<void>;
}

interface Given {
  /** Any relay is connected. */
  readonly isRelayUp: boolean;
  /** What WireGuard has of peers that are new was left by an agent of before. */
  readonly isAdopted: boolean;
}

export interface DevicePathsOptions {
  readonly plan: PathDevice;
  readonly netnsFd?: number;
  /** Of this process. */
  readonly nonce: bigint;
  readonly send: (lane: Correspondent, probe: PathProbe, to: Target) => void;
  readonly onMoved: (report: PathReport) => void;
  readonly onGone: (publicKey: string) => void;
}

interface Lane extends Correspondent {
  readonly node: string;
  readonly path: WatchedPath;
  /** What was told last. */
  told: Way | undefined;
  /** Since when that is its path; of `monotonicMs`. */
  takenAtMs: number;
}

/** Notes the way that a lane takes now. @returns what is told of it */
const noteWay = (lane: Lane, way: Way, session: Pick<PathReport, 'device' | 'publicKey'>): PathReport => {
  const from = lane.told?.path;
  lane.told = way;
  if (way.path !== from) lane.takenAtMs = monotonicMs();
  const { node, takenAtMs } = lane;
  return { ...session, node, takenAtMs, ...way, ...(from === undefined ? {} : { from }) };
};

/** How often an interface is looked at that has no peers. */
const IDLE_MS = 10_000;

/** Direct endpoints of the peers with a session, by public key. */
const sessionsIn = (endpoints: Endpoints, state: DeviceState | undefined): ReadonlyMap<string, string> =>
  new Map(
    (state?.peers ?? []).flatMap((peer) => (endpoints.hasDirectSession(peer) ? [[peer.publicKey, peer.endpoint]] : [])),
  );

const openDevice = ({ name, isUserspace }: PathDevice, netnsFd: number | undefined): WireGuardDevice =>
  isUserspace ? openUserspaceDevice(name) : openKernelDevice(name, netnsFd === undefined ? {} : { netnsFd });

/** Keys of a peer; or the problem of one whose key is of no use. */
const keysFor = ({ privateKey }: PathDevice, { node, publicKey }: PathPeer): PathKeys | Problem => {
  try {
    return derivePathKeys(privateKey, publicKey);
  } catch (error) {
    return uselessKey(node, error);
  }
};

const uselessKey = (node: string, error: unknown): Problem => ({
  reason: 'PathProbeFailed',
  message: `the direct path to ${node} cannot be probed: its WireGuard public key is invalid (${(error as Error).message})`,
});

export const createDevicePaths = (options: DevicePathsOptions): DevicePaths => {
  const { netnsFd, nonce, send, onMoved, onGone } = options;
  let { plan } = options;
  const lanes = new Map<string, Lane>();
  const endpoints = createEndpoints({
    device: openDevice(plan, netnsFd),
    wayOf: (publicKey) => lanes.get(publicKey)?.path.way,
    intervalMs: () => Math.min(IDLE_MS, ...plan.peers.map(({ intervalMs }) => intervalMs)),
    onSession: (publicKey, endpoint) => lanes.get(publicKey)?.path.shookHands(endpoint),
  });

  const onWay = (publicKey: string): void => {
    const lane = lanes.get(publicKey);
    if (!lane?.path.way) return;
    if (lane.path.way.endpoint !== lane.told?.endpoint) endpoints.write(publicKey); // before everything else: this is the move
    onMoved(noteWay(lane, lane.path.way, { device: plan.name, publicKey }));
  };
  const add = (peer: PathPeer, keys: PathKeys, known: { readonly found: Found; readonly isRelayUp: boolean }): void => {
    const { node, publicKey } = peer;
    const path = createPath({
      peer,
      ...known,
      nonce,
      transmit: (probe, to) => send(lane, probe, to),
      isHeardDirectly: (withinMs) => endpoints.isHeardDirectly(publicKey, withinMs),
      onDoubt: () => endpoints.hurry(),
      onWay: () => onWay(publicKey),
    });
    const { listenPort } = plan;
    const onProbe: Lane['onProbe'] = (...probe) => path.onProbe(...probe);
    const lane: Lane = { node, listenPort, keys, path, told: undefined, takenAtMs: monotonicMs(), onProbe };
    lanes.set(publicKey, lane);
    onWay(publicKey);
  };
  const dropStale = (): void => {
    const wanted = new Set(plan.peers.map(({ publicKey }) => publicKey));
    for (const [publicKey, { path }] of lanes) {
      if (wanted.has(publicKey)) continue;
      path.stop();
      lanes.delete(publicKey);
      onGone(publicKey);
    }
  };

  return {
    get plan() {
      return plan;
    },
    async apply(next, { isRelayUp, isAdopted }) {
      plan = next;
      dropStale();
      const fresh = plan.peers.filter(({ publicKey }) => !lanes.has(publicKey));
      // Of a way that is direct for want of a relay: whether it carries already, before there is a choice.
      const isOnTrial = lanes.values().some(({ path }) => path.way?.reason === 'noRelay');
      const state = fresh.length > 0 || isOnTrial ? await endpoints.read() : undefined;
      for (const peer of plan.peers) lanes.get(peer.publicKey)?.path.update(peer, isRelayUp);
      const sessions = sessionsIn(endpoints, state);
      return fresh.flatMap((peer) => {
        const keys = keysFor(plan, peer);
        if ('reason' in keys) return [keys];
        add(peer, keys, { found: { session: sessions.get(peer.publicKey), isAdopted }, isRelayUp });
        return [];
      });
    },
    lanes: () => [...lanes.values()],
    peers: () => [...lanes.keys()],
    async stop() {
      for (const { path } of lanes.values()) path.stop();
      await endpoints.stop();
    },
  };
};
