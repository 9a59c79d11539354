import {
  decodeProbe,
  encodeProbe,
  type Probe,
  ProbeError,
  type ProbeReply,
  type ProbeRequest,
  type ReachedSites,
} from '@unbounded/health';
import type { Measuring } from './measuring.ts';
import { type Family, peerId, type WorkerSettings } from './messages.ts';
import type { PathMtuProber } from './path-mtu.prober.ts';
import type { ProbeKeys } from './probe-keys.ts';
import type { Session } from './session.ts';
import { createProbeSockets, type Destination, type ProbeSockets } from './sockets.ts';

/** Probe packets out and in: who is not known, not authentic or not new is counted and gets no answer. */

/** One whom we exchange probes with. */
export interface Correspondent {
  readonly session: Session;
  readonly pathMtu: PathMtuProber;
  /** Undefined: the peer's public key is of no use; nothing is sent to it, and nothing it sends is believed. */
  readonly keys: ProbeKeys | undefined;
}

export interface Exchange {
  readonly sockets: ProbeSockets;
  transmit(probe: Probe, to: Destination, peer: Correspondent): void;
}

export interface ExchangeOptions {
  readonly settings: Pick<WorkerSettings, 'port' | 'netnsFd'>;
  readonly measuring: Measuring;
  readonly peerAt: (address: string) => Correspondent | undefined;
  /** What replies say of sites; undefined: nothing. */
  readonly reached: (family: Family) => ReachedSites | undefined;
}

export const createExchange = ({ settings, measuring, peerAt, reached }: ExchangeOptions): Exchange => {
  const transmit: Exchange['transmit'] = (probe, to, { keys, session, pathMtu }) => {
    if (!keys) return;
    measuring.sent();
    sockets.send(session.plan.localAddress, to, encodeProbe(probe, keys.own), (code) => {
      measuring.rejected(`send_${code.toLowerCase()}`);
      if (code === 'EMSGSIZE' && probe.type === 'request') pathMtu.onTooLarge(probe.sequence);
    });
  };
  const answer = (peer: Correspondent, request: ProbeRequest, from: Destination): void => {
    const { nonce, sequence, timeNs, size } = request;
    if (!peer.session.accepts(request)) return measuring.rejected('replayed');
    measuring.received();
    const sites = reached(peer.session.plan.family);
    transmit({ type: 'reply', nonce, sequence, timeNs, sizeReceived: size, ...(sites ? { sites } : {}) }, from, peer);
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
      const probe = decodeProbe(bytes, peer.keys.peer);
      if (probe.type === 'request') answer(peer, probe, from);
      else hear(peer, probe);
    } catch (error) {
      if (!(error instanceof ProbeError)) throw error;
      measuring.rejected(error.fault);
    }
  };
  const { port, netnsFd } = settings;
  const sockets = createProbeSockets({ port, ...(netnsFd === undefined ? {} : { netnsFd }), onMessage });
  return { sockets, transmit };
};
