/** What the relay's proxies of a node have counted since their process started. */
export interface RelayTallies {
  /** Packets of WireGuard, a frame each. */
  readonly frames: { readonly sent: number; readonly received: number };
  /** Of these frames. */
  readonly bytes: { readonly sent: number; readonly received: number };
  /** To relays. */
  readonly connections: number;
  /** Sockets that were made anew after an error. */
  readonly rebinds: number;
  /** Packets that went nowhere, by reason. */
  readonly dropped: {
    readonly noRelay: number;
    readonly slowRelay: number;
    readonly tooLong: number;
    readonly unknownPeer: number;
    readonly noWireGuard: number;
  };
}
