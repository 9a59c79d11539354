import type { DeviceChange, DeviceSpec, DeviceState, PeerChange, PeerSpec, PeerState, WireGuardKey } from './device.ts';

/** Which peer has each prefix now. */
const owners = (peers: readonly PeerState[]): Map<string, WireGuardKey> =>
  new Map(
    peers.flatMap(({ publicKey, allowedIps }) =>
      allowedIps.map((prefix): [string, WireGuardKey] => [prefix, publicKey]),
    ),
  );

const addition = (peer: PeerSpec): PeerChange => ({
  op: 'add',
  publicKey: peer.publicKey,
  ...(peer.endpoint !== undefined && { endpoint: peer.endpoint }),
  ...(peer.persistentKeepaliveSeconds && { persistentKeepaliveSeconds: peer.persistentKeepaliveSeconds }),
  ...(peer.presharedKey !== undefined && { presharedKey: peer.presharedKey }),
  allowedIps: peer.allowedIps,
});

/** What a peer gains or changes; what it loses comes later. */
const update = (has: PeerState, wants: PeerSpec): PeerChange | undefined => {
  const held = new Set(has.allowedIps);
  const added = wants.allowedIps.filter((prefix) => !held.has(prefix));
  const keepalive = wants.persistentKeepaliveSeconds ?? 0;
  const change = {
    ...(wants.endpoint !== undefined && wants.endpoint !== has.endpoint && { endpoint: wants.endpoint }),
    ...(keepalive !== has.persistentKeepaliveSeconds && { persistentKeepaliveSeconds: keepalive }),
    ...(wants.presharedKey !== undefined && !has.hasPresharedKey && { presharedKey: wants.presharedKey }),
    ...(added.length > 0 && { addAllowedIps: added }),
  };
  return Object.keys(change).length === 0 ? undefined : { op: 'update', publicKey: wants.publicKey, ...change };
};

/** A prefix that goes to another peer is taken from this one by the device itself: only what nobody wants is left. */
const leftovers = (has: PeerState, wants: PeerSpec, wanted: ReadonlySet<string>): PeerChange | undefined =>
  has.allowedIps.some((prefix) => !wanted.has(prefix))
    ? { op: 'update', publicKey: wants.publicKey, allowedIps: wants.allowedIps }
    : undefined;

/**
 * The fewest changes from what is to what should be; undefined when there is nothing to do. What is gained comes first,
 * what is lost last: a prefix that moves has a peer at every moment. Endpoints that were learned stay where none is wanted.
 * `wantedPublicKey` belongs to the wanted private key.
 */
export const planDevice = (
  observed: DeviceState,
  desired: DeviceSpec,
  wantedPublicKey: WireGuardKey,
): DeviceChange | undefined => {
  const now = new Map(observed.peers.map((peer) => [peer.publicKey, peer]));
  const then = new Set(desired.peers.map(({ publicKey }) => publicKey));
  const wanted = new Set(desired.peers.flatMap(({ allowedIps }) => allowedIps));
  const kept = desired.peers.flatMap((wants): [PeerState, PeerSpec][] => {
    const has = now.get(wants.publicKey);
    return has ? [[has, wants]] : [];
  });
  const peers = [
    ...desired.peers.filter(({ publicKey }) => !now.has(publicKey)).map(addition),
    ...kept.flatMap(([has, wants]) => update(has, wants) ?? []),
    ...kept.flatMap(([has, wants]) => leftovers(has, wants, wanted) ?? []),
    ...observed.peers
      .filter(({ publicKey }) => !then.has(publicKey))
      .map(({ publicKey }): PeerChange => ({ op: 'remove', publicKey })),
  ];
  const device = {
    ...(observed.publicKey !== wantedPublicKey && { privateKey: desired.privateKey }),
    ...(observed.listenPort !== desired.listenPort && { listenPort: desired.listenPort }),
    ...(observed.fwmark !== (desired.fwmark ?? 0) && { fwmark: desired.fwmark ?? 0 }),
  };
  return peers.length === 0 && Object.keys(device).length === 0 ? undefined : { ...device, peers };
};

/** What a device holds after a change, as far as configuration goes: for simulations and tests of planners. */
export const afterChange = (state: DeviceState, change: DeviceChange): DeviceState => {
  const peers = new Map(state.peers.map((peer) => [peer.publicKey, peer]));
  for (const step of change.peers) {
    const has = peers.get(step.publicKey);
    if (step.op === 'remove') peers.delete(step.publicKey);
    else if (has || step.op === 'add') applyPeer(peers, has ?? emptyPeer(step.publicKey), step);
  }
  return {
    ...state,
    listenPort: change.listenPort ?? state.listenPort,
    fwmark: change.fwmark ?? state.fwmark,
    peers: [...peers.values()],
  };
};

const emptyPeer = (publicKey: WireGuardKey): PeerState => ({
  publicKey,
  allowedIps: [],
  persistentKeepaliveSeconds: 0,
  rxBytes: 0,
  txBytes: 0,
  hasPresharedKey: false,
});

const applyPeer = (
  peers: Map<WireGuardKey, PeerState>,
  has: PeerState,
  step: Exclude<PeerChange, { op: 'remove' }>,
): void => {
  const gained = step.allowedIps ?? step.addAllowedIps ?? [];
  const taken = new Set(gained);
  const ownership = owners([...peers.values()]);
  for (const loser of new Set(gained.map((prefix) => ownership.get(prefix)))) {
    const peer = loser === undefined || loser === step.publicKey ? undefined : peers.get(loser);
    if (peer)
      peers.set(peer.publicKey, { ...peer, allowedIps: peer.allowedIps.filter((prefix) => !taken.has(prefix)) });
  }
  const endpoint = step.endpoint ?? has.endpoint;
  peers.set(step.publicKey, {
    ...has,
    ...(endpoint !== undefined && { endpoint }),
    persistentKeepaliveSeconds: step.persistentKeepaliveSeconds ?? has.persistentKeepaliveSeconds,
    hasPresharedKey: step.presharedKey !== undefined || has.hasPresharedKey,
    allowedIps: step.allowedIps ?? [...new Set([...has.allowedIps, ...gained])],
  });
};
