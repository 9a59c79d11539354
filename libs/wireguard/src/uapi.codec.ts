import {
  type DeviceChange,
  type DeviceState,
  type PeerChange,
  type PeerState,
  WireGuardError,
  type WireGuardKey,
} from './device.ts';
import { formatEndpoint, parseEndpoint } from './endpoint.codec.ts';
import { keyFromHex, keyHex } from './key.codec.ts';

/**
 * The text protocol of the cross-platform implementations (wireguard.com/xplatform): `key=value` lines, ended by an
 * empty line. An answer ends with `errno=N` and an empty line.
 */
export const GET_REQUEST = 'get=1\n\n';
export const ANSWER_END = '\n\n';

/** What a `get` says, without the private key itself. */
export interface UapiState extends Omit<DeviceState, 'publicKey'> {
  /** For working out the public key; it must not go further. */
  readonly privateKey?: WireGuardKey;
}

const peerLines = (change: PeerChange): string[] => {
  const lines = [`public_key=${keyHex(change.publicKey)}`];
  if (change.op === 'remove') return [...lines, 'remove=true'];
  if (change.op === 'update') lines.push('update_only=true');
  if (change.presharedKey !== undefined) lines.push(`preshared_key=${keyHex(change.presharedKey)}`);
  if (change.endpoint !== undefined) lines.push(`endpoint=${formatEndpoint(parseEndpoint(change.endpoint))}`);
  if (change.persistentKeepaliveSeconds !== undefined)
    lines.push(`persistent_keepalive_interval=${change.persistentKeepaliveSeconds}`);
  if (change.allowedIps) lines.push('replace_allowed_ips=true');
  for (const prefix of change.allowedIps ?? change.addAllowedIps ?? []) lines.push(`allowed_ip=${safe(prefix)}`);
  return lines;
};

/** A line break inside a value would be a command of its own. @throws WireGuardError `invalid` */
const safe = (prefix: string): string => {
  if (/^[0-9a-fA-F.:]+\/\d{1,3}$/.test(prefix)) return prefix;
  throw new WireGuardError(
    'invalid',
    `allowed IP ${JSON.stringify(prefix.slice(0, 60))} must be a prefix like 192.0.2.0/24`,
  );
};

/** The whole `set` request. @throws WireGuardError `invalid` */
export const formatSet = (change: DeviceChange): string =>
  [
    'set=1',
    ...(change.privateKey === undefined ? [] : [`private_key=${keyHex(change.privateKey)}`]),
    ...(change.listenPort === undefined ? [] : [`listen_port=${change.listenPort}`]),
    ...(change.fwmark === undefined ? [] : [`fwmark=${change.fwmark}`]),
    ...change.peers.flatMap(peerLines),
  ].join('\n') + ANSWER_END;

type MutablePeer = { -readonly [K in keyof PeerState]: PeerState[K] } & {
  allowedIps: string[];
  seconds: number;
  nanoseconds: number;
};

const number = (key: string, value: string): number => {
  if (!/^\d{1,20}$/.test(value)) throw new WireGuardError('malformed', `${key} of the device is not a number`);
  return Number(value);
};

const newPeer = (publicKey: WireGuardKey): MutablePeer => ({
  publicKey,
  allowedIps: [],
  persistentKeepaliveSeconds: 0,
  rxBytes: 0,
  txBytes: 0,
  hasPresharedKey: false,
  seconds: 0,
  nanoseconds: 0,
});

const readPeerLine = (peer: MutablePeer, key: string, value: string): void => {
  switch (key) {
    case 'preshared_key':
      peer.hasPresharedKey = /[^0]/.test(value);
      break;
    case 'endpoint':
      // A peer chooses its source port: a packet from port 0 must not make the others' state unreadable.
      if (!value.endsWith(':0')) peer.endpoint = canonicalEndpoint(value);
      break;
    case 'persistent_keepalive_interval':
      peer.persistentKeepaliveSeconds = number(key, value);
      break;
    case 'last_handshake_time_sec':
      peer.seconds = number(key, value);
      break;
    case 'last_handshake_time_nsec':
      peer.nanoseconds = number(key, value);
      break;
    case 'rx_bytes':
      peer.rxBytes = number(key, value);
      break;
    case 'tx_bytes':
      peer.txBytes = number(key, value);
      break;
    case 'allowed_ip':
      peer.allowedIps.push(value);
      break;
    default: // protocol_version, and what later versions may add
  }
};

const canonicalEndpoint = (value: string): string => {
  try {
    return formatEndpoint(parseEndpoint(value));
  } catch (cause) {
    throw new WireGuardError('malformed', 'an endpoint of the device cannot be read', { cause });
  }
};

const finished = ({ seconds, nanoseconds, ...peer }: MutablePeer): PeerState =>
  seconds === 0 && nanoseconds === 0
    ? peer
    : { ...peer, latestHandshakeMs: seconds * 1000 + Math.floor(nanoseconds / 1_000_000) };

/** errno of an answer (0: done), 0 as well where there is none. */
export const readErrno = (answer: string): number => {
  const value = /(?:^|\n)errno=(-?\d{1,10})\n/.exec(answer)?.[1];
  if (value === undefined) throw new WireGuardError('malformed', 'the answer of the device has no errno');
  return Math.abs(Number(value));
};

/** The answer to {@link GET_REQUEST}. @throws WireGuardError `malformed`; its text never holds a line of the answer */
export const parseState = (answer: string): UapiState => {
  const device: { privateKey?: WireGuardKey; listenPort: number; fwmark: number } = { listenPort: 0, fwmark: 0 };
  const peers: MutablePeer[] = [];
  for (const line of answer.split('\n')) {
    const at = line.indexOf('=');
    if (line === '' || line.startsWith('errno=')) continue;
    if (at <= 0) throw new WireGuardError('malformed', 'a line of the answer of the device has no key');
    const [key, value] = [line.slice(0, at), line.slice(at + 1)];
    const peer = peers.at(-1);
    if (key === 'public_key') peers.push(newPeer(keyFromHex(value)));
    else if (peer) readPeerLine(peer, key, value);
    else if (key === 'private_key') device.privateKey = keyFromHex(value);
    else if (key === 'listen_port') device.listenPort = number(key, value);
    else if (key === 'fwmark') device.fwmark = number(key, value);
  }
  return { ...device, peers: peers.map(finished) };
};
