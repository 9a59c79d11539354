import {
  type Authenticate,
  decodeProbe,
  encodeProbe,
  type MissedEchoes,
  type Probe,
  ProbeError,
  type ProbeReply,
  type ProbeRequest,
  type ReachedSites,
} from '@unbounded/health';
import type { Measuring } from './measuring.ts';
import { type Family, peerId, type WorkerSettings } from './messages.ts';
import type { PathMtuProber } from './path-mtu.prober.ts';
import type { KeyCombination, ProbeKeys } from './probe-keys.ts';
import type { Session } from './session.ts';
import { createProbeSockets, type Destination, type ProbeSockets } from './sockets.ts';

/** Probe packets out and in: who is not known, not authentic or not new is counted and gets no answer. */

/** One whom we exchange probes with. */
interface Correspondent {
  readonly session: Session;
  readonly pathMtu: PathMtuProber;
  /** Undefined: the peer's public key is of no use; nothing is sent to it, and nothing it sends is believed. */
  readonly keys: ProbeKeys | undefined;
  /** A new request came: whether it was made with our next key, and what it says. */
  onRequest(said: { readonly knowsNextKey: boolean; readonly missesEchoes: MissedEchoes | undefined }): void;
}

export interface Exchange {
  readonly sockets: ProbeSockets;
  /** Sends a request of ours. */
  request(probe: ProbeRequest, to: Destination, peer: Correspondent): void;
}

export interface ExchangeOptions {
  readonly settings: Pick<WorkerSettings, 'port' | 'netnsFd'>;
  readonly measuring: Measuring;
  readonly peerAt: (address: string) => Correspondent | undefined;
  /** What replies say of sites; undefined: nothing. */
  readonly reached: (family: Family) => ReachedSites | undefined;
}

/** Reads bytes with the first combination of keys that they are made with. @throws ProbeError */
const decodeWith = (
  bytes: Uint8Array,
  [first, ...others]: readonly KeyCombination[],
): { readonly probe: Probe; readonly keys: KeyCombination } => {
  try {
    return { probe: decodeProbe(bytes, first!.peer), keys: first! };
  } catch (error) {
    if (others.length === 0 || !(error instanceof ProbeError) || error.fault !== 'mac') throw error;
    return decodeWith(bytes, others);
  }
};

export const createExchange = ({ settings, measuring, peerAt, reached }: ExchangeOptions): Exchange => {
  const transmit = (probe: Probe, code: Authenticate, to: Destination, { session, pathMtu }: Correspondent): void => {
    measuring.sent();
    const lane = session.isAnswering() ? 'answering' : 'silent';
    sockets.send({ address: session.plan.localAddress, lane }, to, encodeProbe(probe, code), (fault) => {
      measuring.rejected(`send_${fault.toLowerCase()}`);
      if (fault === 'EMSGSIZE' && probe.type === 'request') pathMtu.onTooLarge(probe.sequence);
    });
  };
  const answer = (peer: Correspondent, request: ProbeRequest, keys: KeyCombination, from: Destination): void => {
    const { nonce, sequence, timeNs, size } = request;
    if (!peer.session.accepts(request)) return measuring.rejected('replayed');
    measuring.received();
    peer.onRequest({ knowsNextKey: keys.isOurNext, missesEchoes: request.missesEchoes });
    const sites = reached(peer.session.plan.family);
    const reply = { type: 'reply' as const, nonce, sequence, timeNs, sizeReceived: size, ...(sites ? { sites } : {}) };
    transmit(reply, keys.own, from, peer);
  };
  const hear = (peer: Correspondent, reply: ProbeReply): void => {
    const heard = peer.session.onReply(reply);
    if (!heard) return measuring.rejected('unexpected');
    measuring.received();
    measuring.roundTrip(peerId(peer.session.plan), heard.rttMs);
    peer.pathMtu.onAnswer(heard);
  };
  const onMessage = (bytes: Uint8Array, from: Destination): void => {
    const peer = peerAt(from.address);
    if (!peer?.keys) return measuring.rejected('unknown');
    try {
      const { probe, keys } = decodeWith(bytes, peer.keys.combinations);
      if (probe.type === 'request') answer(peer, probe, keys, from);
      else hear(peer, probe);
    } catch (error) {
      if (!(error instanceof ProbeError)) throw error;
      measuring.rejected(error.fault);
    }
  };
  const { port, netnsFd } = settings;
  const sockets = createProbeSockets({ port, ...(netnsFd === undefined ? {} : { netnsFd }), onMessage });
  return {
    sockets,
    request(probe, to, peer) {
      if (peer.keys) transmit(probe, peer.keys.request, to, peer);
    },
  };
};
