import {
  addressBytes,
  addressText,
  type Attribute,
  type Attributes,
  MessageWriter,
  NetlinkDecodeError,
} from '@unbounded/netlink';

import { type DeviceChange, type DeviceState, type PeerChange, type PeerState, WireGuardError } from './device.ts';
import { formatEndpoint, parseEndpoint } from './endpoint.codec.ts';
import { isNoKey, keyBytes, keyText } from './key.codec.ts';

/** linux/wireguard.h: the generic netlink family "wireguard", version 1. */
export const FAMILY = 'wireguard';
export const COMMAND = { get: 0, set: 1 } as const;
const DEVICE = { name: 2, privateKey: 3, publicKey: 4, listenPort: 6, fwmark: 7, peers: 8 } as const;
const PEER = {
  publicKey: 1,
  presharedKey: 2,
  flags: 3,
  endpoint: 4,
  keepalive: 5,
  handshake: 6,
  rxBytes: 7,
  txBytes: 8,
  allowedIps: 9,
} as const;
const PEER_FLAG = { remove: 1, replaceAllowedIps: 2, updateOnly: 4 } as const;
const ALLOWED_IP = { family: 1, address: 2, length: 3 } as const;
const [AF_INET, AF_INET6] = [2, 10];

/** struct sockaddr_in or sockaddr_in6: u16 family (host order), u16 port (network order), then the address. */
const sockaddr = (endpoint: string): Uint8Array => {
  const { address, port } = parseEndpoint(endpoint);
  const bytes = addressBytes(address);
  const writer = new MessageWriter(28).u16(bytes.length === 4 ? AF_INET : AF_INET6).be16(port);
  return (bytes.length === 4 ? writer.raw(bytes).zeros(8) : writer.zeros(4).raw(bytes).zeros(4)).bytes();
};

/** Undefined: a peer sent from port 0, which is no endpoint that could be written. */
const readSockaddr = (bytes: Uint8Array): string | undefined => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const family = bytes.length >= 16 ? view.getUint16(0, true) : 0;
  if ((family === AF_INET || family === AF_INET6) && view.getUint16(2) === 0) return undefined;
  if (family === AF_INET)
    return formatEndpoint({ address: addressText(bytes.subarray(4, 8)), port: view.getUint16(2) });
  if (family === AF_INET6 && bytes.length >= 28)
    return formatEndpoint({ address: addressText(bytes.subarray(8, 24)), port: view.getUint16(2) });
  throw new NetlinkDecodeError(`WireGuard endpoint of ${bytes.length} bytes and family ${family}: 2 or 10 is needed`);
};

const writeAllowedIp = (writer: MessageWriter, prefix: string): void => {
  const [address = '', length = ''] = prefix.split('/');
  const bytes = addressBytes(address);
  if (!/^\d{1,3}$/.test(length) || Number(length) > bytes.length * 8) {
    throw new WireGuardError('invalid', `allowed IP "${prefix.slice(0, 60)}" must be a prefix like 192.0.2.0/24`);
  }
  writer.nest(0, () => {
    writer.attributeU16(ALLOWED_IP.family, bytes.length === 4 ? AF_INET : AF_INET6);
    writer.attribute(ALLOWED_IP.address, bytes).attributeU8(ALLOWED_IP.length, Number(length));
  });
};

const writePeer = (writer: MessageWriter, change: PeerChange): void => {
  writer.attribute(PEER.publicKey, keyBytes(change.publicKey));
  if (change.op === 'remove') {
    writer.attributeU32(PEER.flags, PEER_FLAG.remove);
    return;
  }
  const flags =
    (change.allowedIps ? PEER_FLAG.replaceAllowedIps : 0) | (change.op === 'update' ? PEER_FLAG.updateOnly : 0);
  if (flags !== 0) writer.attributeU32(PEER.flags, flags);
  if (change.presharedKey !== undefined) writer.attribute(PEER.presharedKey, keyBytes(change.presharedKey));
  if (change.endpoint !== undefined) writer.attribute(PEER.endpoint, sockaddr(change.endpoint));
  if (change.persistentKeepaliveSeconds !== undefined)
    writer.attributeU16(PEER.keepalive, change.persistentKeepaliveSeconds);
  const prefixes = change.allowedIps ?? change.addAllowedIps;
  if (prefixes) writer.nest(PEER.allowedIps, () => prefixes.forEach((prefix) => writeAllowedIp(writer, prefix)));
};

/**
 * An attribute holds 64 KiB: peers are spread over messages, and the prefixes of a very large peer over several changes. As many as fit are one:
 * where a list is replaced those of the later changes have no peer for a moment.
 */
const PREFIXES_PER_CHANGE = 1500;
const ROOM = 40_000;
const PEER_BYTES = 128;
const PREFIX_BYTES = 40;

const splitPeer = (change: PeerChange): PeerChange[] => {
  if (change.op === 'remove') return [change];
  const prefixes = change.allowedIps ?? change.addAllowedIps ?? [];
  if (prefixes.length <= PREFIXES_PER_CHANGE) return [change];
  const { allowedIps, addAllowedIps: _added, ...rest } = change;
  const first = prefixes.slice(0, PREFIXES_PER_CHANGE);
  const parts: PeerChange[] = [{ ...rest, ...(allowedIps ? { allowedIps: first } : { addAllowedIps: first }) }];
  for (let at = PREFIXES_PER_CHANGE; at < prefixes.length; at += PREFIXES_PER_CHANGE) {
    parts.push({
      op: 'update',
      publicKey: change.publicKey,
      addAllowedIps: prefixes.slice(at, at + PREFIXES_PER_CHANGE),
    });
  }
  return parts;
};

const peerSize = (change: PeerChange): number =>
  PEER_BYTES + (change.op === 'remove' ? 0 : (change.allowedIps ?? change.addAllowedIps ?? []).length * PREFIX_BYTES);

const inGroups = (changes: readonly PeerChange[]): PeerChange[][] => {
  const groups: PeerChange[][] = [[]];
  let size = 0;
  for (const change of changes.flatMap(splitPeer)) {
    if (size > 0 && size + peerSize(change) > ROOM) {
      groups.push([]);
      size = 0;
    }
    groups.at(-1)?.push(change);
    size += peerSize(change);
  }
  return groups;
};

/** The attributes of one or more WG_CMD_SET_DEVICE, to be sent in order. @throws WireGuardError `invalid` */
export const encodeChange = (name: string, change: DeviceChange): Uint8Array[] =>
  inGroups(change.peers).map((peers, index) => {
    const writer = new MessageWriter(4096).attributeText(DEVICE.name, name);
    if (index === 0) {
      if (change.privateKey !== undefined) writer.attribute(DEVICE.privateKey, keyBytes(change.privateKey));
      if (change.listenPort !== undefined) writer.attributeU16(DEVICE.listenPort, change.listenPort);
      if (change.fwmark !== undefined) writer.attributeU32(DEVICE.fwmark, change.fwmark);
    }
    if (peers.length > 0)
      writer.nest(DEVICE.peers, () => peers.forEach((peer) => writer.nest(0, () => writePeer(writer, peer))));
    return writer.bytes();
  });

export const encodeGet = (name: string): Uint8Array => new MessageWriter(32).attributeText(DEVICE.name, name).bytes();

/** struct __kernel_timespec: i64 seconds, i64 nanoseconds. */
const readHandshake = (attribute: Attribute | undefined): number | undefined => {
  if (!attribute) return undefined;
  const bytes = attribute.exactly(16);
  const view = new DataView(bytes.buffer, bytes.byteOffset, 16);
  const [seconds, nanoseconds] = [Number(view.getBigInt64(0, true)), Number(view.getBigInt64(8, true))];
  return seconds === 0 && nanoseconds === 0 ? undefined : seconds * 1000 + Math.floor(nanoseconds / 1_000_000);
};

const readAllowedIp = (entry: Attribute): string => {
  const fields = entry.nested();
  const address = fields.get(ALLOWED_IP.address);
  if (!address) throw new NetlinkDecodeError('WireGuard allowed IP without address');
  return `${addressText(address.bytes)}/${fields.get(ALLOWED_IP.length)?.u8 ?? 0}`;
};

const readPeer = (fields: Attributes): PeerState => {
  const publicKey = fields.get(PEER.publicKey);
  if (!publicKey) throw new NetlinkDecodeError('WireGuard peer without public key');
  const sockaddrBytes = fields.get(PEER.endpoint)?.bytes;
  const [endpoint, presharedKey, latestHandshakeMs] = [
    sockaddrBytes && readSockaddr(sockaddrBytes),
    fields.get(PEER.presharedKey),
    readHandshake(fields.get(PEER.handshake)),
  ];
  return {
    publicKey: keyText(publicKey.exactly(32)),
    ...(endpoint !== undefined && { endpoint }),
    persistentKeepaliveSeconds: fields.get(PEER.keepalive)?.u16 ?? 0,
    ...(latestHandshakeMs !== undefined && { latestHandshakeMs }),
    rxBytes: Number(fields.get(PEER.rxBytes)?.u64 ?? 0n),
    txBytes: Number(fields.get(PEER.txBytes)?.u64 ?? 0n),
    hasPresharedKey: presharedKey !== undefined && !isNoKey(presharedKey.bytes),
    allowedIps: (fields.get(PEER.allowedIps)?.list() ?? []).map(readAllowedIp),
  };
};

/** One message of a dump; a peer with many prefixes goes on in the next. @throws NetlinkDecodeError */
export const decodeDevice = (device: Attributes): DeviceState => {
  const publicKey = device.get(DEVICE.publicKey);
  return {
    ...(publicKey && { publicKey: keyText(publicKey.exactly(32)) }),
    listenPort: device.get(DEVICE.listenPort)?.u16 ?? 0,
    fwmark: device.get(DEVICE.fwmark)?.u32 ?? 0,
    peers: (device.get(DEVICE.peers)?.list() ?? []).map((entry) => readPeer(entry.nested())),
  };
};

/** The messages of a dump as one: peers that were cut are joined again. */
export const joinParts = (parts: readonly DeviceState[]): DeviceState | undefined => {
  const [first] = parts;
  if (!first) return undefined;
  const peers = new Map<string, PeerState>();
  for (const peer of parts.flatMap((part) => part.peers)) {
    const before = peers.get(peer.publicKey);
    peers.set(peer.publicKey, before ? { ...before, allowedIps: [...before.allowedIps, ...peer.allowedIps] } : peer);
  }
  return { ...first, peers: [...peers.values()] };
};
