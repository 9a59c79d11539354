/** What belongs to the overlay at this node, told as firewalls tell packets apart: by device, address, port and protocol. */
export interface OverlayTraffic {
  /** Of the overlay, the bridge of the pods too. */
  readonly devices: readonly string[];
  /** Addresses from which tunnel packets come. */
  readonly peers: readonly string[];
  /** UDP ports to which peers send tunnel packets. */
  readonly peerPorts: readonly number[];
  /** IP protocols in which peers send tunnel packets without a port. */
  readonly peerProtocols: readonly number[];
  /** UDP ports to which a peer may send from any address. */
  readonly openPorts: readonly number[];
  /** Sources outside of the overlay whose packets may go to pods. Prefixes and addresses. */
  readonly entries: readonly string[];
  /** It has packets of IPv6. */
  readonly hasIpv6: boolean;
}

/** Connectivity sets it, when its own table is in force; other sections read it. */
export interface SharedTraffic {
  /** Undefined: there is no plan yet. */
  current(): OverlayTraffic | undefined;
  readonly set: (traffic: OverlayTraffic) => void;
  onChange(listener: () => void): void;
}

export const createSharedTraffic = (): SharedTraffic => {
  let current: OverlayTraffic | undefined;
  let known = '';
  const listeners: (() => void)[] = [];
  return {
    current: () => current,
    set(traffic) {
      const text = JSON.stringify(traffic);
      if (text === known) return;
      known = text;
      current = traffic;
      for (const listener of listeners) listener();
    },
    onChange: (listener) => void listeners.push(listener),
  };
};
