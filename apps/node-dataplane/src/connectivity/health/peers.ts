import type { MissedEchoes, ProbeRequest } from '@unbounded/health';
import type { ProbePlan, Problem } from '@unbounded/topology';
import { peerId } from './messages.ts';
import { createPathMtuProber, type PathMtuProber } from './path-mtu.prober.ts';
import type { PeerKeys, ProbeKeys } from './probe-keys.ts';
import { createSession, type Session } from './session.ts';
import type { Verdict, VerdictFile } from './verdict-file.ts';

/** Everybody who is probed, by id (node and family). */

export interface Peer {
  readonly session: Session;
  readonly pathMtu: PathMtuProber;
  /** Undefined: the peer's public key is of no use. */
  keys: ProbeKeys | undefined;
  /** Its last request was made with our next key. */
  knowsNextKey: boolean;
  /** What its last request said of its echoes through this node; undefined: they come back. */
  missesEchoes: MissedEchoes | undefined;
  onRequest(said: Pick<Peer, 'knowsNextKey' | 'missesEchoes'>): void;
}

export interface Peers {
  /** Begins, changes and ends probing so that it is as planned. `gone`: who is not probed any more. */
  ensure(probes: readonly ProbePlan[], ceilingBytes: number): { gone: string[]; problems: Problem[] };
  get(id: string): Peer | undefined;
  /** By overlay address. */
  at(address: string): Peer | undefined;
  entries(): IterableIterator<[string, Peer]>;
  /** Our own keys are others: all are derived anew. */
  renewKeys(): void;
  verdicts(): Map<string, Verdict>;
  stop(): void;
}

export interface PeersOptions {
  readonly file: VerdictFile;
  /** @throws Error when a key is of no use */
  readonly deriveKeys: (keys: PeerKeys) => ProbeKeys;
  readonly transmit: (request: ProbeRequest, peer: Peer) => void;
  /** State, grace or reached sites of a peer are others than before. */
  readonly onVerdict: (id: string, peer: Peer) => void;
  readonly onPathMtu: (id: string, peer: Peer) => void;
  /** The peer heard of our next key, or there is none any more; or it began or ceased to miss its echoes. */
  readonly onTold: (id: string, peer: Peer) => void;
  /** Whether echoes through a peer are lost. */
  readonly missesEchoes: (id: string) => MissedEchoes | undefined;
}

/** Everything of a plan that keys are derived from. */
const keysText = ({ publicKey, nextPublicKey }: PeerKeys): string => `${publicKey} ${nextPublicKey ?? ''}`;

const ensureKeys = (peer: Peer, plan: ProbePlan, deriveKeys: PeersOptions['deriveKeys']): Problem[] => {
  const { node } = plan;
  try {
    peer.keys = deriveKeys(plan);
    return [];
  } catch (error) {
    peer.keys = undefined;
    const message = `node ${node} cannot be probed: its WireGuard public key is invalid (${(error as Error).message})`;
    return [{ reason: 'ProbeFailed', message }];
  }
};

/** At most so long the silence of peers that an earlier process knew is put down to their own start. */
const START_MS = 10_000;

/**
 * Where all agents of a cluster are replaced at once, each finds the others away for a moment although every path is well.
 * So peers that an earlier process knew have not failed before half of them have answered, or the time is over.
 */
const createStart = () => {
  const overMs = performance.now() + START_MS;
  let known = 0;
  let replied = 0;
  return {
    isOn: (): boolean => performance.now() < overMs && 2 * replied < known,
    /** For the session of a peer that an earlier process knew. */
    watch() {
      known++;
      return { isStarting: this.isOn, onFirstReply: () => void replied++ };
    },
  };
};

export const createPeers = (options: PeersOptions): Peers => {
  const { file, deriveKeys, transmit, onVerdict, onPathMtu, onTold, missesEchoes } = options;
  const known = new Map(file.known);
  const start = createStart();
  const peers = new Map<string, Peer>();
  let byAddress = new Map<string, Peer>();

  const add = (id: string, plan: ProbePlan, ceilingBytes: number): Peer => {
    const before = known.get(id);
    known.delete(id); // a peer that goes and comes back later is new
    const session: Session = createSession({
      plan,
      nonce: file.nonce,
      ...(before ? { known: before, ...start.watch() } : {}),
      transmit: (request) => transmit(request, peer),
      missesEchoes: () => missesEchoes(id),
      onVerdict: () => onVerdict(id, peer),
    });
    const pathMtu = createPathMtuProber({ session, ceilingBytes, onFound: () => onPathMtu(id, peer) });
    const peer: Peer = {
      session,
      pathMtu,
      keys: undefined,
      knowsNextKey: false,
      missesEchoes: undefined,
      onRequest(said) {
        const isKnown = said.knowsNextKey === peer.knowsNextKey && said.missesEchoes === peer.missesEchoes;
        if (!isKnown) onTold(id, Object.assign(peer, said));
      },
    };
    peers.set(id, peer);
    return peer;
  };
  const stop = ({ session, pathMtu }: Peer): void => {
    session.stop();
    pathMtu.stop();
  };

  return {
    ensure(probes, ceilingBytes) {
      const wanted = new Map(probes.map((probe) => [peerId(probe), probe]));
      const gone = [...peers.keys()].filter((id) => !wanted.has(id));
      for (const id of gone) {
        stop(peers.get(id)!);
        peers.delete(id);
      }
      const problems = [...wanted].flatMap(([id, plan]) => {
        const before = peers.get(id);
        const isChanged = before !== undefined && keysText(before.session.plan) !== keysText(plan);
        const peer = before ?? add(id, plan, ceilingBytes);
        peer.session.update(plan);
        peer.pathMtu.setCeiling(ceilingBytes);
        return peer.keys && !isChanged ? [] : ensureKeys(peer, plan, deriveKeys);
      });
      byAddress = new Map([...peers.values()].map((peer) => [peer.session.plan.address, peer]));
      return { gone, problems };
    },
    get: (id) => peers.get(id),
    at: (address) => byAddress.get(address),
    entries: () => peers.entries(),
    renewKeys() {
      for (const peer of peers.values()) {
        ensureKeys(peer, peer.session.plan, deriveKeys); // who gave useless ones is told of with the plan
        peer.onRequest({ knowsNextKey: false, missesEchoes: peer.missesEchoes });
      }
    },
    verdicts: () => new Map([...peers].map(([id, { session }]) => [id, session.verdict])),
    stop() {
      for (const peer of peers.values()) stop(peer);
    },
  };
};
