/** 32 bytes as base64 (44 characters), as `wg` writes keys. */
export type WireGuardKey = string;

/** `192.0.2.1:51820` or `[2001:db8::1]:51820`. */
export type Endpoint = string;

/** A peer as it should be. */
export interface PeerSpec {
  readonly publicKey: WireGuardKey;
  /** Absent: the peer finds us; an endpoint that was learned is kept. */
  readonly endpoint?: Endpoint;
  /** Canonical prefixes; within one device no prefix can belong to two peers. */
  readonly allowedIps: readonly string[];
  /** Absent or 0: off. */
  readonly persistentKeepaliveSeconds?: number;
  /** Written only, never read back: to change one, remove the peer and add it again. */
  readonly presharedKey?: WireGuardKey;
}

/** A device as it should be. */
export interface DeviceSpec {
  readonly privateKey: WireGuardKey;
  readonly listenPort: number;
  /** Firewall mark of the encrypted packets; 0 or absent: none. */
  readonly fwmark?: number;
  readonly peers: readonly PeerSpec[];
}

export interface PeerState extends Omit<PeerSpec, 'presharedKey'> {
  readonly persistentKeepaliveSeconds: number;
  /** Milliseconds since the epoch; undefined before the first handshake. */
  readonly latestHandshakeMs?: number;
  readonly rxBytes: number;
  readonly txBytes: number;
  readonly hasPresharedKey: boolean;
}

export interface DeviceState {
  readonly publicKey?: WireGuardKey;
  readonly listenPort: number;
  readonly fwmark: number;
  readonly peers: readonly PeerState[];
}

/** Change of one peer. Everything absent stays as it is. */
export type PeerChange =
  | { readonly op: 'remove'; readonly publicKey: WireGuardKey }
  | {
      readonly op: 'add' | 'update';
      readonly publicKey: WireGuardKey;
      readonly endpoint?: Endpoint;
      readonly persistentKeepaliveSeconds?: number;
      readonly presharedKey?: WireGuardKey;
      /** Added to what it has; another peer that has one of them loses it in the same moment. */
      readonly addAllowedIps?: readonly string[];
      /** Replaces all of them. */
      readonly allowedIps?: readonly string[];
    };

/** Changes of a device, applied in order. Peers that are not named are not touched. */
export interface DeviceChange {
  readonly privateKey?: WireGuardKey;
  readonly listenPort?: number;
  readonly fwmark?: number;
  readonly peers: readonly PeerChange[];
}

/** A WireGuard device, whoever runs it. */
export interface WireGuardDevice extends AsyncDisposable {
  /** @throws WireGuardError `absent` when there is no such device */
  get(): Promise<DeviceState>;
  /** Writes the changes in order. @throws WireGuardError; what came before the failing change has happened */
  apply(change: DeviceChange): Promise<void>;
}

/** Why a device could not be read or written. Never holds a key. */
export class WireGuardError extends Error {
  override readonly name = 'WireGuardError';
  /**
   * absent: no such device; refused: it said no; malformed: its answer makes no sense; unreachable: no answer in time;
   * invalid: what was asked cannot be (a key of the wrong length, an endpoint without a port).
   */
  readonly reason: 'absent' | 'refused' | 'malformed' | 'unreachable' | 'invalid';

  constructor(reason: WireGuardError['reason'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}
