import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';

/** A UDP socket where WireGuard would listen, and what comes to it. */
export interface StandIn extends Disposable {
  readonly socket: Socket;
  readonly port: number;
  readonly close: () => void;
  readonly got: { readonly payload: Buffer; readonly port: number }[];
}

export const startStandIn = async (port = 0, address = '127.0.0.1'): Promise<StandIn> => {
  const socket = createSocket(address === '::1' ? 'udp6' : 'udp4');
  const got: StandIn['got'] = [];
  socket.on('message', (payload, from) => got.push({ payload, port: from.port }));
  socket.on('error', () => {});
  socket.bind(port, address);
  await once(socket, 'listening');
  let isOpen = true;
  socket.on('close', () => {
    isOpen = false;
  });
  const close = (): void => {
    if (isOpen) socket.close();
    isOpen = false;
  };
  return { socket, port: socket.address().port, got, close, [Symbol.dispose]: close };
};
