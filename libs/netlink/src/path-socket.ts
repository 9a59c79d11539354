import { addressBytes, addressText } from './address.codec.ts';
import { addon } from './native.ts';

/**
 * UDP datagrams from and to ports that are another socket's, such as WireGuard's: a raw socket. They leave by the usual way
 * out (rules, routes, nftables, conntrack see the port's own flow), and those that come have passed the way in. Of
 * what comes only datagrams to the given ports that begin with the magic get past the socket's filter in the kernel.
 */
export interface PathSocket extends Disposable {
  /** Which local ports are listened at; none at first. @throws Error with `code` E2BIG for more than 2,000 */
  setPorts(ports: Iterable<number>): void;
  /**
   * Sends now. Returns the errno, 0 when it was sent: ENETUNREACH, EPERM (a firewall), EINVAL (`from` is not ours), …
   * @param from the local address; absent: the kernel's choice
   */
  send(datagram: PathDatagram): number;
  close(): void;
}

interface PathAddress {
  /** Numeric, of the socket's family. */
  readonly address: string;
  readonly port: number;
}

/** Of what came `remote` is the sender, of what is sent the destination. */
export interface PathDatagram {
  readonly remote: PathAddress;
  readonly localPort: number;
  /** Of what came: the address that it came to. */
  readonly localAddress?: string;
  /** At most 2,048 bytes. */
  readonly bytes: Uint8Array;
}

export interface PathSocketOptions {
  readonly family: 4 | 6;
  readonly netnsFd?: number;
  /** The first four bytes of datagrams that are to be read, as a big-endian u32. */
  readonly magic: number;
  readonly onDatagram: (datagram: Required<PathDatagram>) => void;
}

const RECORD_HEADER_BYTES = 40;
const NO_ADDRESS = new Uint8Array(0);

const readRecords = (bytes: Uint8Array, addressSize: number): Required<PathDatagram>[] => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const datagrams: Required<PathDatagram>[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = view.getUint16(at);
    const addressAt = (offset: number): string => addressText(bytes.subarray(at + offset, at + offset + addressSize));
    const payload = at + RECORD_HEADER_BYTES;
    datagrams.push({
      remote: { address: addressAt(8), port: view.getUint16(at + 2) },
      localPort: view.getUint16(at + 4),
      localAddress: addressAt(24),
      bytes: bytes.subarray(payload, payload + length),
    });
    at = payload + ((length + 3) & ~3);
  }
  return datagrams;
};

const portBytes = (ports: readonly number[]): Uint8Array => {
  const bytes = new Uint8Array(2 * ports.length);
  const view = new DataView(bytes.buffer);
  for (const [index, port] of ports.entries()) {
    if (!Number.isInteger(port) || port < 1 || port > 0xffff)
      throw new RangeError(`port is ${port}: it must be an integer within 1..65535`);
    view.setUint16(2 * index, port);
  }
  return bytes;
};

/** @throws Error with `code` EPERM (it needs CAP_NET_RAW), EAFNOSUPPORT, … */
export const openPathSocket = ({ family, netnsFd = -1, magic, onDatagram }: PathSocketOptions): PathSocket => {
  const native = addon();
  const size = family === 4 ? 4 : 16;
  const handle = native.openPathSocket(family, netnsFd, magic, (bytes) => {
    for (const datagram of readRecords(bytes, size)) onDatagram(datagram);
  });
  const close = (): void => native.closePathSocket(handle);
  return {
    setPorts: (ports) => native.setPathPorts(handle, portBytes([...ports])),
    send: ({ remote, localPort, localAddress, bytes }) =>
      native.sendPathProbe(
        handle,
        addressBytes(remote.address),
        localAddress === undefined ? NO_ADDRESS : addressBytes(localAddress),
        portBytes([localPort, remote.port]),
        bytes,
      ),
    close,
    [Symbol.dispose]: close,
  };
};
