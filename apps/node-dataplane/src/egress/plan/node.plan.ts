import type { EgressNodeSlice, EgressRoute, OwnedAddress } from '@unbounded/crds';
import { tryParseAddress } from '@unbounded/ip';
import type { Problem } from '@unbounded/topology';
import { familyOf } from '../../kernel/nft-family.ts';
import type { OverlayPeers } from '../../kernel/overlay-peers.ts';
import type { EgressPlan, NextHop, PodClass, PodRoute } from './egress-plan.ts';
import type { LocalPod, NodeInputs } from './node-inputs.ts';
import { tunnelMtuBytes } from './tunnel.plan.ts';

/** From a node's slices, pods and peers to its plan. */

const routeOf = ({ rule, destinations, except = [], egress = [], whenUnavailable }: EgressRoute): PodRoute => ({
  rule,
  destinations,
  except,
  egress: egress.flatMap(({ address, node }) => (node === undefined ? [] : [{ address, owner: node }])),
  unavailable: whenUnavailable === 'Node' ? 'pass' : 'drop',
});

/** Of a pod that a rule selects, or may select, and whose routes are not known yet. */
const NOT_YET: PodRoute = {
  rule: 'not known yet',
  destinations: ['0.0.0.0/0', '::/0'],
  except: [],
  egress: [],
  unavailable: 'drop',
};

interface RoutedPod {
  readonly pod: PodClass['pods'][number];
  readonly routes: readonly PodRoute[];
}

/** Pods with the same routes together. */
const classesOf = (routed: readonly RoutedPod[]): PodClass[] => {
  const classes = Map.groupBy(routed, ({ routes }) => JSON.stringify(routes));
  return [...classes.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, members]) => ({
      routes: members[0]!.routes,
      pods: members.map(({ pod }) => pod).sort((a, b) => (a.uid < b.uid ? -1 : 1)),
    }));
};

type SliceEntry<Kind extends 'pods' | 'sources'> = NonNullable<EgressNodeSlice['spec'][Kind]>[number];

const entriesOf = <Kind extends 'pods' | 'sources'>(
  slices: readonly EgressNodeSlice[],
  kind: Kind,
): readonly { readonly entry: SliceEntry<Kind>; readonly routes: readonly PodRoute[] }[] =>
  slices.flatMap(({ spec }) =>
    ((spec[kind] ?? []) as readonly SliceEntry<Kind>[]).map((entry) => ({
      entry,
      routes: entry.routes.map((place) => {
        const route = spec.routes?.[place];
        return route ? routeOf(route) : NOT_YET;
      }),
    })),
  );

type RoutesByPod = ReadonlyMap<string, readonly PodRoute[]>;

/** Pods that slices list with an address, by that. */
type PodsByAddress = ReadonlyMap<string, readonly { readonly uid: string }[]>;
const NOBODY: PodsByAddress = new Map();

const podsByAddress = (entries: readonly { readonly entry: SliceEntry<'pods'> }[]): PodsByAddress =>
  Map.groupBy(
    entries.flatMap(({ entry: { uid, addresses } }) => addresses.map((address) => ({ uid, address }))),
    ({ address }) => address,
  );

/**
 * Where its addresses are is the CNI plugin's word: those of a slice may be of a pod that is no more. While slices list one of them with another
 * pod, owners go by that pod's routes: it waits.
 */
const steeredOf = (
  node: string,
  pods: readonly LocalPod[],
  listed: RoutesByPod,
  statedBy: PodsByAddress = NOBODY,
): PodClass[] => {
  const isAnothers = ({ uid, addresses }: LocalPod): boolean =>
    addresses.some((address) => statedBy.get(address)?.some((other) => other.uid !== uid));
  const routesOf = (pod: LocalPod): readonly PodRoute[] | undefined => {
    const routes = listed.get(pod.uid) ?? (pod.selection === 'none' ? undefined : [NOT_YET]);
    return routes && isAnothers(pod) ? [NOT_YET] : routes;
  };
  return classesOf(
    pods.flatMap((pod) => {
      const routes = routesOf(pod);
      return routes ? [{ pod: { uid: pod.uid, node, addresses: pod.addresses }, routes }] : [];
    }),
  );
};

/**
 * A plan of before, for the pods that are there now: those that are gone keep nothing, since others may have their addresses, and one that
 * came later reaches the cluster alone unless it is known that no rule selects it.
 */
export const withPods = (plan: EgressPlan, pods: readonly LocalPod[]): EgressPlan => {
  const known = plan.steered.flatMap(({ routes, pods: own }) => own.map(({ uid }) => [uid, routes] as const));
  return { ...plan, steered: steeredOf(plan.node, pods, new Map(known)) };
};

/** Each once: one that moves to another slice is in both for a moment. */
const translatedOf = ({ node, slices }: NodeInputs): PodClass[] => {
  const sources = new Map(entriesOf(slices, 'sources').map((source) => [source.entry.uid, source]));
  return classesOf(
    [...sources.values()].flatMap(({ entry, routes }) => {
      if (entry.node === node) return []; // among its own pods
      const addresses = entry.addresses.filter((text) => tryParseAddress(text) !== undefined);
      return [{ pod: { uid: entry.uid, node: entry.node, addresses }, routes }];
    }),
  );
};

/** Addresses that a slice gives to the node. */
export const grantsOf = ({ spec }: EgressNodeSlice): readonly OwnedAddress[] =>
  (spec.owned ?? []).filter(({ release }) => release !== true);

const noDevice = ({ address }: OwnedAddress): Problem => ({
  reason: 'EgressAddressUnreachable',
  message: `egress address ${address}: the node has no device with a subnet that holds it: give the pool an interface that the node has, or announce: None where a route leads to the node`,
});

/** The router of the address's family, and the device to it; undefined: the node's routes decide. */
const nextHopOf = (
  { address, nextHops = [] }: OwnedAddress,
  device: string | undefined,
  deviceOf: NodeInputs['deviceOf'],
): NextHop | Problem | undefined => {
  const router = nextHops.find((text) => familyOf(text) === familyOf(address));
  if (router === undefined) return undefined;
  const found = deviceOf(router) ?? device;
  if (found !== undefined) return { router, device: found };
  return {
    reason: 'EgressAddressUnreachable',
    message: `egress address ${address}: the node has no device with a subnet that holds the next hop ${router}: correct nextHops of the pool, give the pool an interface that the node has, or take the node out of its nodeSelector`,
  };
};

const addressesOf = ({
  slices,
  granted,
  deviceOf,
}: NodeInputs): Pick<NodePlanned, 'problems'> & Pick<EgressPlan, 'addresses'> => {
  const problems: Problem[] = [];
  const addresses = slices.flatMap(grantsOf).flatMap((owned): EgressPlan['addresses'] => {
    const { address, interface: device = deviceOf(address), announce } = owned;
    if (!granted.has(address)) return [];
    const way = nextHopOf(owned, device, deviceOf);
    if (way && 'reason' in way) {
      problems.push(way);
      return [];
    }
    const hop = way && { nextHop: way };
    if (announce === 'None') return [{ address, device: undefined, ...hop }];
    if (device !== undefined) return [{ address, device, ...hop }];
    problems.push(noDevice(owned));
    return [];
  });
  return { addresses, problems };
};

const namesOf = (classes: readonly PodClass[], of: (own: PodClass) => readonly string[]): string[] =>
  classes.flatMap(of);

const peersOf = (peers: OverlayPeers, node: string, steered: readonly PodClass[], translated: readonly PodClass[]) => {
  const names = new Set([
    ...namesOf(steered, ({ routes }) => routes.flatMap(({ egress }) => egress.map(({ owner }) => owner))),
    ...namesOf(translated, ({ pods }) => pods.map((pod) => pod.node)),
  ]);
  names.delete(node);
  const known = new Map(names.size === 0 ? [] : peers.nodes().map((one) => [one.node, one.overlayAddresses]));
  return [...names].sort().map((name) => ({ node: name, overlayAddresses: known.get(name) ?? [] }));
};

const unknownPeer = (node: string): Problem => ({
  reason: 'EgressPeerUnknown',
  message: `egress: node ${node} has no address in the overlay: packets of pods to it are dropped until it has one`,
});

export interface NodePlanned {
  readonly plan: EgressPlan;
  readonly problems: readonly Problem[];
}

export const planNodeEgress = (inputs: NodeInputs): NodePlanned => {
  const { node, peers, overlayDevices, apiServices } = inputs;
  const { overlayAddresses, podCidrs, keepsSource, apiServer } = peers;
  const entries = entriesOf(inputs.slices, 'pods');
  const listed = new Map(entries.map(({ entry, routes }) => [entry.uid, routes]));
  const [steered, translated] = [steeredOf(node, inputs.pods, listed, podsByAddress(entries)), translatedOf(inputs)];
  const far = peersOf(peers, node, steered, translated);
  const { addresses, problems } = addressesOf(inputs);
  const isIdle = steered.length + translated.length + addresses.length === 0;
  const nodeAddresses = isIdle ? [] : peers.nodes().flatMap((one) => one.addresses);
  return {
    plan: {
      node,
      overlayAddresses,
      mtuBytes: tunnelMtuBytes(peers, peers.mtuBytes),
      podCidrs,
      overlayDevices,
      cluster: [...new Set([...keepsSource, ...apiServer, ...nodeAddresses])].sort(),
      apiServices,
      peers: far,
      steered,
      translated,
      addresses,
    },
    problems: [
      ...problems,
      ...far.filter((peer) => peer.overlayAddresses.length === 0).map((peer) => unknownPeer(peer.node)),
    ],
  };
};
