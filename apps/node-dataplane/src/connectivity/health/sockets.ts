import { createSocket, type Socket } from 'node:dgram';
import { openUdp } from '@unbounded/netlink';
import type { Family } from './messages.ts';

/**
 * The sockets that probes leave by and come in at: some for each overlay address of the node. They are bound to that
 * address, not to all of them: what comes from the underlay's side has no business here.
 *
 * What is sent to a node that is off stays in the kernel for long: seconds until its MAC address is given up, more until
 * WireGuard gives up its handshake. All that time it counts against the buffer of its socket, so who answers has another.
 */
export interface ProbeSockets {
  /** Opens and closes sockets so that there are those of each address, and no others. Returns what could not be opened, with the reason. */
  ensure(addresses: ReadonlyMap<string, Family>): Map<string, string>;
  /** Sends now or never; `failed` is called with the reason when the kernel refuses. */
  send(from: Origin, to: Destination, bytes: Uint8Array, failed: (code: string) => void): void;
  close(): void;
}

/** Of those that answer, and of those that do not (yet): neither waits for the other. */
const LANES = ['answering', 'silent'] as const;
type Lane = (typeof LANES)[number];

interface Origin {
  readonly address: string;
  readonly lane: Lane;
}

export interface Destination {
  readonly address: string;
  readonly port: number;
}

export interface SocketOptions {
  readonly port: number;
  readonly netnsFd?: number;
  readonly onMessage: (bytes: Uint8Array, from: Destination & { readonly family: Family }) => void;
}

/** Room for the probes of some thousands of peers that come at once. */
const RECEIVE_BUFFER_BYTES = 1 << 20;
/**
 * The kernel counts some 800 bytes a probe, and lets twice this wait: of those that answer one request and one reply each;
 * for each node that is off at most 128 (WireGuard's queue), which is room for 600 such nodes, at 100 ms and VXLAN for 2,500.
 */
const SEND_BUFFER_BYTES = 32 << 20;

const open = (address: string, family: Family, { port, netnsFd, onMessage }: SocketOptions): Socket => {
  const shared = { sharesPort: true, sendBufferBytes: SEND_BUFFER_BYTES };
  const fd = openUdp({ address, port, ...shared, ...(netnsFd === undefined ? {} : { netnsFd }) });
  const socket = createSocket({
    type: family === 4 ? 'udp4' : 'udp6',
    // Addresses are numbers: nothing is to be looked up.
    lookup: (host, _options, found) => found(null, host, family),
  });
  socket.on('message', (bytes, from) => onMessage(bytes, { address: from.address, port: from.port, family }));
  socket.on('error', () => undefined); // each send tells of its own failure; an interval without reply tells of the rest
  socket.bind({ fd });
  socket.setRecvBufferSize(RECEIVE_BUFFER_BYTES);
  return socket;
};

type Lanes = Readonly<Record<Lane, Socket>>;

const closeLanes = (lanes: Partial<Lanes>): void => {
  for (const socket of Object.values(lanes)) socket.close();
};

const openLanes = (address: string, family: Family, options: SocketOptions): Lanes => {
  const lanes: Partial<Record<Lane, Socket>> = {};
  try {
    for (const lane of LANES) lanes[lane] = open(address, family, options);
    return lanes as Lanes;
  } catch (error) {
    closeLanes(lanes);
    throw error;
  }
};

export const createProbeSockets = (options: SocketOptions): ProbeSockets => {
  const opened = new Map<string, Lanes>();
  return {
    ensure(addresses) {
      const refused = new Map<string, string>();
      for (const [address, lanes] of opened) {
        if (addresses.has(address)) continue;
        closeLanes(lanes);
        opened.delete(address);
      }
      for (const [address, family] of addresses) {
        if (opened.has(address)) continue;
        try {
          opened.set(address, openLanes(address, family, options));
        } catch (error) {
          refused.set(address, (error as Error).message);
        }
      }
      return refused;
    },
    send(from, { address, port }, bytes, failed) {
      const socket = opened.get(from.address)?.[from.lane];
      if (!socket) return failed('NO_SOCKET');
      // What waits for room in the kernel's buffer would leave when its interval is long over.
      if (socket.getSendQueueCount() > 0) return failed('EAGAIN');
      socket.send(bytes, port, address, (error) => {
        if (error) failed((error as NodeJS.ErrnoException).code ?? 'UNKNOWN');
      });
    },
    close() {
      for (const lanes of opened.values()) closeLanes(lanes);
      opened.clear();
    },
  };
};
