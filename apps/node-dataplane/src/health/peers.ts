import type { ProbeRequest } from '@unbounded/health';
import type { ProbePlan, Problem } from '@unbounded/topology';
import { peerId } from './messages.ts';
import { createPathMtuProber, type PathMtuProber } from './path-mtu.prober.ts';
import type { ProbeKeys } from './probe-keys.ts';
import { createSession, type Session } from './session.ts';
import type { Verdict, VerdictFile } from './verdict-file.ts';

/** Everybody who is probed, by id (node and family). */

export interface Peer {
  readonly session: Session;
  readonly pathMtu: PathMtuProber;
  /** Undefined: the peer's public key is of no use. */
  keys: ProbeKeys | undefined;
}

export interface Peers {
  /** Begins, changes and ends probing so that it is as planned. `gone`: who is not probed any more. */
  ensure(probes: readonly ProbePlan[], ceilingBytes: number): { gone: string[]; problems: Problem[] };
  get(id: string): Peer | undefined;
  /** By overlay address. */
  at(address: string): Peer | undefined;
  entries(): IterableIterator<[string, Peer]>;
  verdicts(): Map<string, Verdict>;
  stop(): void;
}

export interface PeersOptions {
  readonly file: VerdictFile;
  /** @throws Error when the key is of no use */
  readonly deriveKeys: (publicKey: string) => ProbeKeys;
  readonly transmit: (request: ProbeRequest, peer: Peer) => void;
  /** State, grace or reached sites of a peer are others than before. */
  readonly onVerdict: (id: string, peer: Peer) => void;
  readonly onPathMtu: (id: string, peer: Peer) => void;
}

export const createPeers = ({ file, deriveKeys, transmit, onVerdict, onPathMtu }: PeersOptions): Peers => {
  const known = new Map(file.known);
  const peers = new Map<string, Peer>();
  let byAddress = new Map<string, Peer>();

  const add = (id: string, plan: ProbePlan, ceilingBytes: number): Peer => {
    const before = known.get(id);
    known.delete(id); // a peer that goes and comes back later is new
    const session: Session = createSession({
      plan,
      nonce: file.nonce,
      ...(before ? { known: before } : {}),
      transmit: (request) => transmit(request, peer),
      onVerdict: () => onVerdict(id, peer),
    });
    const pathMtu = createPathMtuProber({ session, ceilingBytes, onFound: () => onPathMtu(id, peer) });
    const peer: Peer = { session, pathMtu, keys: undefined };
    peers.set(id, peer);
    return peer;
  };
  const ensureKeys = (peer: Peer, { node, publicKey }: ProbePlan, isChanged: boolean): Problem[] => {
    if (peer.keys && !isChanged) return [];
    try {
      peer.keys = deriveKeys(publicKey);
      return [];
    } catch (error) {
      peer.keys = undefined;
      const message = `node ${node} cannot be probed: its WireGuard public key is of no use (${(error as Error).message})`;
      return [{ reason: 'ProbeFailed', message }];
    }
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
        const isChanged = before?.session.plan.publicKey !== plan.publicKey;
        const peer = before ?? add(id, plan, ceilingBytes);
        peer.session.update(plan);
        peer.pathMtu.setCeiling(ceilingBytes);
        return ensureKeys(peer, plan, isChanged);
      });
      byAddress = new Map([...peers.values()].map((peer) => [peer.session.plan.address, peer]));
      return { gone, problems };
    },
    get: (id) => peers.get(id),
    at: (address) => byAddress.get(address),
    entries: () => peers.entries(),
    verdicts: () => new Map([...peers].map(([id, { session }]) => [id, session.verdict])),
    stop() {
      for (const peer of peers.values()) stop(peer);
    },
  };
};
