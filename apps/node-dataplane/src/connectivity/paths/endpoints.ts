import { type DeviceState, type PeerState, type WireGuardDevice, WireGuardError } from '@unbounded/wireguard';
import type { Way } from './way.ts';

/**
 * The endpoints of one WireGuard interface. WireGuard itself moves them to wherever the last authentic packet came from, so
 * they are looked at in every interval, and written again where a packet has pulled one to the other path.
 */
export interface Endpoints {
  /** What the interface holds; undefined: it is not there, or does not answer. */
  read(): Promise<DeviceState | undefined>;
  /** The way of a peer is another: writes it at once. */
  write(publicKey: string): void;
  /** Whether the peer was received from directly within so many milliseconds. */
  isHeardDirectly(publicKey: string, withinMs: number): boolean;
  /** Whether there was a handshake with the peer lately, and WireGuard sends to it directly. */
  hasDirectSession(peer: PeerState): peer is DirectPeer;
  /** Looks oftener for two intervals. */
  hurry(): void;
  /** Ends looking when what has begun is done. */
  stop(): Promise<void>;
}

export interface EndpointsOptions {
  /** Closed at the end. */
  readonly device: WireGuardDevice;
  /** What is to be; undefined: whatever is. */
  readonly wayOf: (publicKey: string) => Way | undefined;
  readonly intervalMs: () => number;
  /** Whenever the interface is read, for each peer with a session ({@link createSessions}) and a direct endpoint. */
  readonly onSession: (publicKey: string, endpoint: string) => void;
}

/** Looking may take so much of this thread's time at most: an interface may have thousands of peers. */
const SHARE = 0.05;
/**
 * However long an interface takes to answer, and more than the share that may be: who does not look notices neither a handshake nor a packet
 * that led the wrong way.
 */
const LONGEST_PAUSE_MS = 10_000;
/** After another packet has moved an endpoint the next will soon: so much sooner it is looked at again. */
const HASTE = 4;

/** On 127.0.0.0/8 or ::1 there are only proxies of relays. */
export const isProxied = (endpoint: string): boolean => endpoint.startsWith('127.') || endpoint.startsWith('[::1]');

/** After so long WireGuard gives up a session: what it heard before says nothing of now. */
const SESSION_MS = 180_000;

export interface Clocks {
  /** Wall clock: WireGuard tells the time of handshakes by it. */
  readonly now: () => number;
  /** A clock that only goes forward. */
  readonly elapsed: () => number;
}

const CLOCKS: Clocks = { now: Date.now, elapsed: () => performance.now() };

type DirectPeer = PeerState & { readonly endpoint: string };

/** Keys are rotated, and nodes come and go: what is known of a key ends with its peer. */
const keepOnly = (known: Map<string, unknown>, keys: ReadonlySet<string>): void => {
  for (const key of known.keys()) if (!keys.has(key)) known.delete(key);
};

/**
 * Which peers had a handshake lately. The wall clock may be set at any moment, so it is asked only about the handshake that was
 * there at first; from then on a handshake is as old as our knowledge of it. One in the future (the clock was set back) is new.
 */
export const createSessions = ({ now, elapsed }: Clocks = CLOCKS) => {
  const shaken = new Map<string, { readonly handshakeMs: number; readonly sinceMs: number }>();
  const note = ({ publicKey, latestHandshakeMs: handshakeMs }: PeerState): number => {
    if (handshakeMs === undefined) return Number.NEGATIVE_INFINITY;
    const before = shaken.get(publicKey);
    if (before?.handshakeMs === handshakeMs) return before.sinceMs;
    const sinceMs = elapsed() - (before ? 0 : Math.max(0, now() - handshakeMs));
    shaken.set(publicKey, { handshakeMs, sinceMs });
    return sinceMs;
  };
  return {
    /** Whether there was a handshake with the peer lately, and it is sent to directly. */
    isDirect: (peer: PeerState): peer is DirectPeer => {
      const isLate = elapsed() - note(peer) < SESSION_MS;
      return isLate && peer.endpoint !== undefined && !isProxied(peer.endpoint);
    },
    /** @param keys of all peers that the interface has */
    keepOnly: (keys: ReadonlySet<string>): void => keepOnly(shaken, keys),
  };
};

/** Whether WireGuard's endpoint is on the other path. Any address by which the peer came is as direct as the chosen one. */
export const isPulledAway = (endpoint: string | undefined, way: Way): boolean => {
  if (way.path === 'relay') return endpoint !== way.endpoint;
  return endpoint === undefined || isProxied(endpoint);
};

interface Heard {
  readonly rxBytes: number;
  readonly atMs: number;
}

/** When peers were received from directly, as far as looks can tell. */
const createEar = (onSession: EndpointsOptions['onSession']) => {
  const sessions = createSessions();
  const heard = new Map<string, Heard>();
  const note = (peer: PeerState): void => {
    const { publicKey, rxBytes, endpoint } = peer;
    const before = heard.get(publicKey);
    const isDirect = endpoint !== undefined && !isProxied(endpoint);
    const isNews = before !== undefined && rxBytes > before.rxBytes && isDirect;
    const atMs = isNews ? performance.now() : (before?.atMs ?? Number.NEGATIVE_INFINITY);
    heard.set(publicKey, { rxBytes, atMs });
    if (sessions.isDirect(peer)) onSession(publicKey, peer.endpoint);
  };
  return {
    hasDirectSession: sessions.isDirect,
    /** @param peers all that the interface has */
    noteAll(peers: readonly PeerState[]): void {
      peers.forEach(note);
      const keys = new Set(peers.map(({ publicKey }) => publicKey));
      sessions.keepOnly(keys);
      keepOnly(heard, keys);
    },
    within: (publicKey: string, ms: number): boolean =>
      performance.now() - (heard.get(publicKey)?.atMs ?? Number.NEGATIVE_INFINITY) <= ms,
  };
};

/** A device that is not there is made or started by others; there is nothing to do until then. */
const unlessAway = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof WireGuardError) return undefined;
    throw error;
  }
};

/** The relay before anything has said what the direct way is worth. */
const isUntried = (way: Way | undefined): boolean => way?.path === 'relay' && way.reason === 'unvalidated';

/** Writes the ways of peers. @throws WireGuardError when the interface is away */
const createGiving = (
  { device, wayOf, onSession }: Pick<EndpointsOptions, 'device' | 'wayOf' | 'onSession'>,
  read: () => Promise<DeviceState | undefined>,
) => {
  const give = async (keys: readonly string[]): Promise<void> => {
    const peers = keys.flatMap((publicKey) => {
      const way = wayOf(publicKey);
      return way ? [{ op: 'update' as const, publicKey, endpoint: way.endpoint }] : [];
    });
    if (peers.length > 0) await device.apply({ peers });
  };
  /**
   * A peer may shake hands directly in the very moment in which it is to be sent to by the relay. Once that is written nothing would tell
   * it, and packets would go to a relay at which the peer may not be: so it is asked before, and afterwards about what came meanwhile.
   */
  const giveUntried = async (keys: readonly string[]): Promise<void> => {
    const before = new Map((await read())?.peers.map((peer) => [peer.publicKey, peer]));
    await give(keys);
    for (const { publicKey, latestHandshakeMs } of (await device.get()).peers) {
      const { endpoint, latestHandshakeMs: handshakeMs } = before.get(publicKey) ?? {};
      const isNews = latestHandshakeMs !== undefined && latestHandshakeMs !== handshakeMs;
      if (isNews && keys.includes(publicKey) && endpoint !== undefined && !isProxied(endpoint))
        onSession(publicKey, endpoint);
    }
  };
  return (keys: readonly string[]): Promise<void> =>
    keys.some((key) => isUntried(wayOf(key))) ? giveUntried(keys) : give(keys);
};

export const createEndpoints = ({ device, wayOf, intervalMs, onSession }: EndpointsOptions): Endpoints => {
  const ear = createEar(onSession);
  const changed = new Set<string>();
  let isStopped = false;
  let hastyUntilMs = 0;
  let timer: NodeJS.Timeout | undefined;
  let working: Promise<void> = Promise.resolve();

  const read = async (): Promise<DeviceState | undefined> => {
    const state = await unlessAway(() => device.get());
    if (state) ear.noteAll(state.peers);
    return state;
  };
  const give = createGiving({ device, wayOf, onSession }, read);
  const look = async (): Promise<void> => {
    const beganMs = performance.now();
    const state = await read();
    const pulled = (state?.peers ?? []).filter(({ publicKey, endpoint }) => {
      const way = wayOf(publicKey);
      return way !== undefined && isPulledAway(endpoint, way);
    });
    await unlessAway(() => give(pulled.map(({ publicKey }) => publicKey)));
    const isHasty = pulled.length > 0 || performance.now() < hastyUntilMs;
    const leastMs = Math.min((performance.now() - beganMs) * (isHasty ? 1 : 1 / SHARE), LONGEST_PAUSE_MS);
    lookAfter(Math.max(leastMs, isHasty ? intervalMs() / HASTE : intervalMs()));
  };
  const work = (job: () => Promise<unknown>): void => {
    working = working.then(job).then(
      () => undefined,
      () => lookAfter(intervalMs()),
    );
  };
  const lookAfter = (ms: number): void => {
    clearTimeout(timer);
    if (!isStopped) timer = setTimeout(() => work(look), ms);
  };
  lookAfter(0);

  return {
    read,
    write(publicKey) {
      changed.add(publicKey);
      if (changed.size > 1) return;
      work(async () => {
        const keys = [...changed];
        changed.clear();
        await unlessAway(() => give(keys));
        lookAfter(intervalMs() / HASTE); // packets that are under way by the other path pull it back
      });
    },
    hurry() {
      if (performance.now() >= hastyUntilMs) lookAfter(0);
      hastyUntilMs = performance.now() + 2 * intervalMs();
    },
    isHeardDirectly: (publicKey, withinMs) => ear.within(publicKey, withinMs),
    hasDirectSession: (peer): peer is DirectPeer => ear.hasDirectSession(peer),
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await working;
      await device[Symbol.asyncDispose]();
    },
  };
};
