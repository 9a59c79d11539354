import { once } from 'node:events';
import { subprotocolsOf } from '../stream/subprotocols.ts';
import type { ReplayedCluster } from './replayed-cluster.testdata.ts';

/** A second client of the stream, in this process: when a message came here, the aggregator had sent it to the page too. */
export interface StreamListener extends Disposable {
  /** When a message with that text came, by the clock of the machine, and its length. */
  momentSent(text: string): Promise<{ readonly at: number; readonly characters: number }>;
  /** Of the first message: the whole view. */
  readonly viewCharacters: number;
}

export const listenToStream = async ({ url, viewerToken }: ReplayedCluster): Promise<StreamListener> => {
  // The certificate is of an authority that was made a minute ago, on this machine.
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
  const to = new URL('v1alpha1/stream', url);
  to.protocol = 'wss:';
  const socket = new WebSocket(to, subprotocolsOf(viewerToken));
  const waiting = new Map<string, (sent: { readonly at: number; readonly characters: number }) => void>();
  let viewCharacters = 0;
  socket.addEventListener('message', ({ data }) => {
    const message = String(data);
    viewCharacters ||= message.length;
    for (const [text, resolve] of waiting)
      if (message.includes(text)) {
        waiting.delete(text);
        resolve({ at: performance.timeOrigin + performance.now(), characters: message.length });
      }
  });
  await once(socket, 'message');
  return {
    momentSent: (text) => new Promise((resolve) => waiting.set(text, resolve)),
    viewCharacters,
    [Symbol.dispose]: () => socket.close(),
  };
};
