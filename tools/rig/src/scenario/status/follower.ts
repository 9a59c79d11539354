import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { applyMergePatch, type Json } from '@unbounded/status/merge-patch';
import { WebSocket } from 'ws';

/** A client of the live view: it goes from replica to replica with its position, as the dashboard does. */
export interface Follower extends Disposable {
  /** Of each update, in the order of their coming; `view` where all of it came. */
  readonly steps: readonly { readonly type: 'view' | 'update'; readonly position: string }[];
  view(): Json | undefined;
  readonly isOpen: boolean;
  /** It has no connection, and none is being made. */
  readonly isAlone: boolean;
  /** Connects to a replica from where it is. */
  go(socket: string): void;
}

/** Positions of one history are numbered: ID-NUMBER. */
export const numbersOf = ({ steps }: Pick<Follower, 'steps'>): number[] =>
  steps.map(({ position }) => Number(position.split('-').at(-1)));

interface Message {
  readonly type: 'view' | 'update' | 'notices';
  readonly position: string;
  readonly view?: Json;
  readonly patch?: Json;
}

/** A replica that ends just then does not answer. */
const HANDSHAKE_MS = 5000;

export const createFollower = (token: string): Follower => {
  const steps: { type: 'view' | 'update'; position: string }[] = [];
  let view: Json | undefined;
  let client: WebSocket | undefined;
  const take = ({ type, position, view: whole, patch }: Message): void => {
    if (type === 'notices') return;
    view = type === 'view' ? whole : applyMergePatch(view, patch!);
    steps.push({ type, position });
  };
  return {
    steps,
    view: () => view,
    get isOpen() {
      return client?.readyState === WebSocket.OPEN;
    },
    get isAlone() {
      return client === undefined || client.readyState >= WebSocket.CLOSING;
    },
    go(socket) {
      client?.terminate();
      const last = steps.at(-1)?.position;
      const query = last === undefined ? '' : `?position=${encodeURIComponent(last)}`;
      client = new WebSocket(`wss://status-aggregator/v1alpha1/stream${query}`, {
        headers: { authorization: `Bearer ${token}` },
        handshakeTimeout: HANDSHAKE_MS,
        // The lab's own, whose authority the spec of the agent's client is about.
        createConnection: () => connectTls({ socket: connect(socket), rejectUnauthorized: false }),
      });
      client.on('message', (data: Buffer) => take(JSON.parse(data.toString()) as Message));
      client.on('error', () => undefined); // isOpen tells
    },
    [Symbol.dispose]: () => client?.terminate(),
  };
};
