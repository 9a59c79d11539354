import type { Server, Socket } from 'node:net';

import { Crowd } from './crowd.ts';

export interface ConnectionLimit {
  /** Connections that have proven nothing yet. */
  readonly most: number;
  /** Time that they have to do so; not set: the server sees to that. */
  readonly deadlineMs?: number;
  /** One was cut because there were too many. */
  readonly onCut?: () => void;
}

/** Either end of a TCP connection, whatever stands for it: a TLS socket has those of the socket below it. */
type Ends = Pick<Socket, 'remoteAddress' | 'remotePort'>;
const nameOf = ({ remoteAddress, remotePort }: Ends): string => `${remoteAddress} ${remotePort}`;

/**
 * Bounds the connections of a server that have proven nothing yet: beyond `most` the oldest of the address with the most is
 * cut. Returns a function that lets one in: from then on it does not count.
 */
export const limitConnections = (
  server: Server,
  { most, deadlineMs, onCut = () => {} }: ConnectionLimit,
): ((connection: Ends) => void) => {
  const crowd = new Crowd<Socket>(most);
  const waiting = new Map<string, Socket>();
  const timers = new Map<Socket, NodeJS.Timeout>();
  const forget = (socket: Socket, name: string): void => {
    crowd.leave(socket);
    if (waiting.get(name) === socket) waiting.delete(name);
    clearTimeout(timers.get(socket));
    timers.delete(socket);
  };
  server.on('connection', (socket: Socket) => {
    const name = nameOf(socket);
    const victim = crowd.enter(socket, socket.remoteAddress ?? '');
    waiting.set(name, socket);
    if (deadlineMs !== undefined) timers.set(socket, setTimeout(() => socket.destroy(), deadlineMs).unref());
    socket.once('close', () => forget(socket, name));
    if (victim === undefined) return;
    crowd.leave(victim);
    victim.destroy();
    onCut();
  });
  return (connection) => {
    const name = nameOf(connection);
    const socket = waiting.get(name);
    if (socket !== undefined) forget(socket, name);
  };
};
