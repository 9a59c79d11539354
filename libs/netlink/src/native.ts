import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/** An open netlink socket of the addon. */
export type SocketHandle = { readonly __socket: unique symbol };

/** A raw UDP socket of the addon. */
type PathSocketHandle = { readonly __pathSocket: unique symbol };

/** The addon's end of a TUN. */
type TunHandle = { readonly __tun: unique symbol };

/** A packet socket of the addon. */
type PacketHandle = { readonly __packet: unique symbol };

/** What `native/module.c` exports; the comments there say what each does. */
interface NetlinkAddon {
  openSocket(
    protocol: number,
    netnsFd: number,
    bufferBytes: number,
    callback: (bytes: Uint8Array, errno: number, writable: boolean) => void,
  ): SocketHandle;
  sendBytes(socket: SocketHandle, bytes: Uint8Array): boolean;
  setMembership(socket: SocketHandle, group: number, join: boolean): void;
  holdLoop(socket: SocketHandle, on: boolean): void;
  netnsOf(socket: SocketHandle): number;
  closeSocket(socket: SocketHandle): void;
  createNetns(path: string): number;
  createTun(name: string, netnsFd: number): void;
  openUdp(address: string, port: number, netnsFd: number, sendBufferBytes: number, sharesPort: boolean): number;
  openPathSocket(
    family: 4 | 6,
    netnsFd: number,
    magic: number,
    callback: (bytes: Uint8Array) => void,
  ): PathSocketHandle;
  setPathPorts(socket: PathSocketHandle, ports: Uint8Array): void;
  sendPathProbe(
    socket: PathSocketHandle,
    to: Uint8Array,
    from: Uint8Array,
    ports: Uint8Array,
    payload: Uint8Array,
  ): number;
  closePathSocket(socket: PathSocketHandle): void;
  openTun(name: string, netnsFd: number, callback: (bytes: Uint8Array) => void): TunHandle;
  injectPacket(tun: TunHandle, packet: Uint8Array): number;
  closeTun(tun: TunHandle): void;
  openPacket(
    link: number,
    etherType: number,
    group: Uint8Array | undefined,
    netnsFd: number,
    callback: (bytes: Uint8Array) => void,
  ): PacketHandle;
  sendFrame(socket: PacketHandle, frame: Uint8Array): void;
  closePacket(socket: PacketHandle): void;
}

const load = (): NetlinkAddon => {
  const file =
    process.env['UNBOUNDED_NETLINK_ADDON'] ?? fileURLToPath(new URL('../native/build/netlink.node', import.meta.url));
  if (!existsSync(file))
    execFileSync(fileURLToPath(new URL('../native/build.sh', import.meta.url)), {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
  return createRequire(import.meta.url)(file) as NetlinkAddon;
};

let loaded: NetlinkAddon | undefined;

/** The addon; loaded (and built, where it is missing) at the first call, so that importing this library has no effect. */
export const addon = (): NetlinkAddon => (loaded ??= load());
