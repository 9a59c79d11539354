import type { Link } from '@unbounded/netlink';
import type { Problem, WireGuardInterfacePlan, WireGuardPeerPlan } from '@unbounded/topology';
import {
  type DeviceSpec,
  type DeviceState,
  diffDevice,
  openKernelDevice,
  openUserspaceDevice,
  peerFault,
  type PeerSpec,
  WireGuardError,
  type WireGuardDevice,
} from '@unbounded/wireguard';
import { rejectedUnits, writeUnit } from './keeper-units.ts';
import type { StateFaults } from '../../state/state-faults.ts';

/** Brings WireGuard interfaces to their plan, in the kernel or in wireguard-go; peers that are right are not touched. */

export interface WireGuardContext {
  /** The node's key of a generation; undefined: there is none (any more). */
  readonly keyOf: (generation: number) => NodeKey | undefined;
  readonly unitsDir: string;
  /** Takes units that cannot be written: the interface itself goes on. */
  readonly faults?: StateFaults;
}

/** Of peers that have a relay: where they begin. Whoever chooses between their ways writes their endpoints from then on. */
export type EndpointOf = (device: WireGuardInterfacePlan, peer: WireGuardPeerPlan) => string | undefined;

interface NodeKey {
  readonly privateKey: string;
  /** Where it is, for node-keeper. */
  readonly file: string;
}

const isUserspace = (link: Link | undefined): boolean => link?.kind?.kind === 'tun';

const peerOf = (plan: WireGuardInterfacePlan, peer: WireGuardPeerPlan, endpointOf: EndpointOf): PeerSpec => {
  const { publicKey, allowedIps, persistentKeepaliveSeconds } = peer;
  const endpoint = peer.relay ? endpointOf(plan, peer) : peer.endpoint;
  return {
    publicKey,
    allowedIps,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(persistentKeepaliveSeconds === undefined ? {} : { persistentKeepaliveSeconds }),
  };
};

/** The peers that a device can have. One that it cannot have is reported, and the others are applied without it. */
export const usablePeers = (
  plan: WireGuardInterfacePlan,
  endpointOf: EndpointOf,
): { readonly peers: PeerSpec[]; readonly problems: Problem[] } => {
  const problems: Problem[] = [];
  const peers = plan.peers.flatMap((planned) => {
    const peer = peerOf(plan, planned, endpointOf);
    const fault = peerFault(peer);
    if (fault === undefined) return [peer];
    const message = `${plan.name}: peer ${planned.node} is left out: ${fault}; restart the agent of node ${planned.node}, which publishes its key anew`;
    problems.push({ reason: 'InvalidPeer', message });
    return [];
  });
  return { peers, problems };
};

/** The peers as the device is to have them: endpoints that are somebody else's to choose stay as they are. */
const withoutChosen = (
  peers: readonly PeerSpec[],
  plan: WireGuardInterfacePlan,
  isKnown: (publicKey: string) => boolean,
): PeerSpec[] => {
  const chosen = new Set(plan.peers.flatMap(({ publicKey, relay }) => (relay ? [publicKey] : [])));
  return peers.map(({ endpoint, ...peer }) =>
    endpoint === undefined || (chosen.has(peer.publicKey) && isKnown(peer.publicKey)) ? peer : { ...peer, endpoint },
  );
};

const GREETING_SECONDS = 25;

/**
 * A new peer that can be called is called at once (a keepalive that begins sends a packet): the first handshake then
 * succeeds from the end that is set up last, instead of five seconds after the first packet was held back for it. The next
 * pass takes the keepalive away again where the plan has none.
 */
const greeting = (peers: readonly PeerSpec[], isNew: (publicKey: string) => boolean): PeerSpec[] =>
  peers.map((peer) =>
    peer.endpoint !== undefined && peer.persistentKeepaliveSeconds === undefined && isNew(peer.publicKey)
      ? { ...peer, persistentKeepaliveSeconds: GREETING_SECONDS }
      : peer,
  );

/** Peers with the endpoints that were learned, so that a restarted process can call them too. */
const withLearned = (peers: readonly PeerSpec[], state: DeviceState): PeerSpec[] =>
  peers.map((peer) => {
    const learned = state.peers.find(({ publicKey }) => publicKey === peer.publicKey)?.endpoint;
    return peer.endpoint === undefined && learned !== undefined ? { ...peer, endpoint: learned } : peer;
  });

const openDevice = (link: Link): WireGuardDevice =>
  isUserspace(link) ? openUserspaceDevice(link.name) : openKernelDevice(link.name);

interface WireGuardWork extends WireGuardContext {
  readonly endpointOf: EndpointOf;
}

/** An interface of the plan that is there. */
interface Wanted {
  readonly plan: WireGuardInterfacePlan;
  readonly link: Link;
  readonly key: NodeKey;
  readonly peers: readonly PeerSpec[];
}

const applyOne = async (
  { plan, link, key, peers }: Wanted,
  { unitsDir, faults }: WireGuardWork,
): Promise<DeviceState> => {
  const unit = { device: plan.name, privateKeyFile: key.file, listenPort: plan.listenPort };
  await using device = openDevice(link);
  const state = await device.get();
  const known = new Set(state.peers.map(({ publicKey }) => publicKey));
  const isKnown = (publicKey: string): boolean => known.has(publicKey);
  const desired: DeviceSpec = {
    privateKey: key.privateKey,
    listenPort: plan.listenPort,
    peers: greeting(withoutChosen(peers, plan, isKnown), (publicKey) => !isKnown(publicKey)),
  };
  if (isUserspace(link)) writeUnit(unitsDir, { ...unit, peers: withLearned(peers, state) }, faults);
  const change = diffDevice(state, desired);
  if (!change) return state;
  await device.apply(change);
  return await device.get(); // before the device is closed
};

/** Asks the keeper for the process of a user-space interface that has none yet. */
const requestProcess = ({ plan, key, peers }: Wanted, { unitsDir, faults }: WireGuardWork): void => {
  const unit = { device: plan.name, privateKeyFile: key.file, listenPort: plan.listenPort };
  writeUnit(unitsDir, { ...unit, peers: greeting(peers, () => true) }, faults);
};

export interface WireGuardOutcome {
  readonly states: ReadonlyMap<string, DeviceState>;
  readonly problems: readonly Problem[];
  /** Interfaces whose process does not answer yet: ask again soon. */
  readonly waiting: readonly string[];
}

export const ensureWireGuard = async (
  plans: readonly WireGuardInterfacePlan[],
  links: ReadonlyMap<string, Link>,
  context: WireGuardWork,
): Promise<WireGuardOutcome> => {
  const states = new Map<string, DeviceState>();
  const problems: Problem[] = [];
  const waiting: string[] = [];
  for (const plan of plans) {
    const link = links.get(plan.name);
    if (!link) continue; // said already by the step that makes devices
    const key = context.keyOf(plan.keyGeneration ?? 0);
    if (!key) {
      // Of a kept plan from before the end of an exchange: what the kernel holds stays until there are objects to plan from.
      const message = `${plan.name} is left as it is: the node has no key of generation ${plan.keyGeneration ?? 0} any more`;
      problems.push({ reason: 'WireGuardFailed', message });
      continue;
    }
    const usable = usablePeers(plan, context.endpointOf);
    problems.push(...usable.problems);
    const wanted = { plan, link, key, peers: usable.peers };
    try {
      states.set(plan.name, await applyOne(wanted, context));
    } catch (error) {
      if (!(error instanceof WireGuardError)) throw error;
      if (isUserspace(link) && (error.reason === 'absent' || error.reason === 'unreachable')) {
        requestProcess(wanted, context);
        waiting.push(plan.name);
      } else problems.push({ reason: 'WireGuardFailed', message: `${plan.name}: ${error.message}` });
    }
  }
  if (plans.some(({ name }) => isUserspace(links.get(name)))) problems.push(...rejectedUnits(context.unitsDir));
  return { states, problems, waiting };
};

/** What the interfaces of a plan are like now; those that are not there, or do not answer, are left out. */
export const readWireGuard = async (
  plans: readonly WireGuardInterfacePlan[],
  links: readonly Link[],
): Promise<WireGuardOutcome['states']> => {
  const states = new Map<string, DeviceState>();
  for (const link of links.filter(({ name }) => plans.some((plan) => plan.name === name))) {
    try {
      await using device = openDevice(link);
      states.set(link.name, await device.get());
    } catch (error) {
      if (!(error instanceof WireGuardError)) throw error;
    }
  }
  return states;
};
