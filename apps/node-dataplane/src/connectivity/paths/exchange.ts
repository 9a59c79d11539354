import {
  decodePathProbe,
  encodePathProbe,
  PATH_PROBE_MAGIC,
  pairNameOf,
  type PathProbe,
  ProbeError,
  splitPathProbes,
} from '@unbounded/health';
import { openPathSocket, type PathDatagram, type PathSocket } from '@unbounded/netlink';
import type { Measuring } from '../health/measuring.ts';
import type { Target } from './path.ts';
import type { PathKeys } from './path-keys.ts';

/** Path probes out and in, from and to the ports of WireGuard interfaces. What is not authentic is counted and ends here. */

/** One lane, as packets name it. */
export interface Correspondent {
  readonly listenPort: number;
  readonly keys: PathKeys;
  onProbe(probe: PathProbe, from: Target): 'counted' | 'replayed' | 'unexpected';
}

export interface Exchange {
  /** Whose packets are taken from now on. */
  setCorrespondents(all: readonly Correspondent[]): void;
  send(lane: Correspondent, probe: PathProbe, to: Target): void;
  close(): void;
}

const nameOf = (port: number, name: Uint8Array): string => `${port} ${Buffer.from(name).toString('hex')}`;

/** @throws Error with `code` EPERM without CAP_NET_RAW; of a family that the kernel does not have there is no socket */
const openSockets = (
  netnsFd: number | undefined,
  onDatagram: (datagram: Required<PathDatagram>) => void,
): ReadonlyMap<4 | 6, PathSocket> => {
  const sockets = new Map<4 | 6, PathSocket>();
  for (const family of [4, 6] as const) {
    try {
      const namespace = netnsFd === undefined ? {} : { netnsFd };
      sockets.set(family, openPathSocket({ family, ...namespace, magic: PATH_PROBE_MAGIC, onDatagram }));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAFNOSUPPORT') throw error;
    }
  }
  return sockets;
};

export const createExchange = (measuring: Measuring, netnsFd?: number): Exchange => {
  let byName: ReadonlyMap<string, Correspondent> = new Map();

  const read = (bytes: Uint8Array, { remote, localPort, localAddress }: Required<PathDatagram>): string => {
    const lane = byName.get(nameOf(localPort, pairNameOf(bytes)));
    if (!lane) return 'unknown';
    return lane.onProbe(decodePathProbe(bytes, lane.keys.peer.authenticate), { ...remote, localAddress });
  };
  const onDatagram = (datagram: Required<PathDatagram>): void => {
    for (const bytes of splitPathProbes(datagram.bytes)) {
      try {
        const outcome = read(bytes, datagram);
        if (outcome === 'counted') measuring.received();
        else measuring.rejected(outcome);
      } catch (error) {
        if (!(error instanceof ProbeError)) throw error;
        measuring.rejected(error.fault);
      }
    }
  };
  const sockets = openSockets(netnsFd, onDatagram);
  return {
    setCorrespondents(all) {
      byName = new Map(all.map((lane) => [nameOf(lane.listenPort, lane.keys.peer.name), lane]));
      const ports = new Set(all.map(({ listenPort }) => listenPort));
      for (const socket of sockets.values()) socket.setPorts(ports);
    },
    send({ listenPort, keys: { own } }, probe, { address, port, localAddress }) {
      const errno = sockets.get(address.includes(':') ? 6 : 4)?.send({
        remote: { address, port },
        localPort: listenPort,
        ...(localAddress === undefined ? {} : { localAddress }),
        bytes: encodePathProbe(probe, own.name, own.authenticate),
      });
      measuring.sent();
      if (errno !== 0) measuring.rejected('send');
    },
    close() {
      for (const socket of sockets.values()) socket.close();
    },
  };
};
