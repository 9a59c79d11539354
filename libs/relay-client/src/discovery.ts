import { isIP, isIPv4 } from 'node:net';

import { type Endpoint, parseEndpoint } from './endpoint.ts';
import { isPublicAddress } from './public-address.ts';
import type { RelayService } from './relay-set.ts';
import { ranked } from './rendezvous.ts';

/** What is read of a Service (core/v1). */
export interface ServiceLike {
  readonly spec?: {
    readonly type?: string;
    readonly externalTrafficPolicy?: string;
    readonly externalIPs?: readonly string[];
    readonly ports?: readonly {
      readonly name?: string;
      readonly port: number;
      readonly protocol?: string;
      readonly nodePort?: number;
    }[];
  };
  readonly status?: {
    readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[] };
  };
}

/** What is read of a Node (core/v1). */
export interface NodeLike {
  readonly metadata?: { readonly name?: string };
  readonly status?: {
    readonly addresses?: readonly { readonly type: string; readonly address: string }[];
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** What is read of a gateway in the status of its GatewayPool: addresses that gateway-health has validated. */
export interface GatewayLike {
  readonly name: string;
  readonly externalIPs?: readonly string[];
  readonly internalIPs?: readonly string[];
}

export interface ManagedRelay {
  readonly service: ServiceLike | undefined;
  readonly nodes: readonly NodeLike[];
  /** Of all pools: only they have addresses for others. */
  readonly gateways: readonly GatewayLike[];
  /** `Mesh.spec.relay.managed.port`: which of the Service's ports is the relay's, when it has several. */
  readonly port?: number;
  /** Who asks: nodes that offer a port are tried in an order of one's own, so that not all go by the first. */
  readonly self?: string;
  /** Relays that run on our own node: what we send to its own address may be led to relays elsewhere. */
  readonly onSelf?: readonly Endpoint[];
}

/** More nodes with an open port than this are not tried. */
const MOST_NODES = 8;
const DNS_NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\.?$/i;
/** Names that only the cluster's own DNS knows: asking it needs the network that is to be made. */
const CLUSTER_NAME = /(^|\.)(svc|cluster\.local)(\.|$)/i;

type ServicePort = NonNullable<NonNullable<ServiceLike['spec']>['ports']>[number];

const relayPort = (service: ServiceLike, wanted: number | undefined): ServicePort | undefined => {
  const tcp = (service.spec?.ports ?? []).filter(({ protocol = 'TCP' }) => protocol === 'TCP');
  return tcp.find(({ port }) => port === wanted) ?? tcp.find(({ name }) => name === 'relay') ?? tcp[0];
};

const at = (host: string, port: number): Endpoint => ({ host, port, isTls: false });

const ofLoadBalancer = (service: ServiceLike, port: number): Endpoint[] => {
  const ingress = service.status?.loadBalancer?.ingress ?? [];
  const addresses = ingress.flatMap(({ ip }) => (ip !== undefined && isIP(ip) !== 0 ? [ip] : []));
  const names = ingress.flatMap(({ hostname }) =>
    hostname !== undefined && DNS_NAME.test(hostname) && isIP(hostname) === 0 && !CLUSTER_NAME.test(hostname)
      ? [hostname]
      : [],
  );
  return [...addresses, ...names].map((host) => at(host, port));
};

const isReady = ({ status }: NodeLike): boolean =>
  status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false;

/**
 * By the name of the node: an external address, else an internal one that is public, which is all that some clouds give. Never
 * what a Node says by itself: its kubelet writes that, and any worker could draw relays and their clients to itself.
 */
export const publicAddresses = (gateways: readonly GatewayLike[]): ReadonlyMap<string, string> =>
  new Map(
    gateways.flatMap(({ name, externalIPs = [], internalIPs = [] }) => {
      const found = [...externalIPs, ...internalIPs.filter(isPublicAddress)].filter((address) => isIP(address) !== 0);
      const address = found.find(isIPv4) ?? found[0];
      return address === undefined ? [] : [[name, address] as const];
    }),
  );

const ofNodes = ({ nodes, gateways, self = '' }: ManagedRelay, nodePort: number): Endpoint[] => {
  const addressOf = publicAddresses(gateways);
  const offered = (ready: boolean): string[] => {
    const addresses = nodes.flatMap((node) =>
      isReady(node) === ready ? [addressOf.get(node.metadata?.name ?? '') ?? []].flat() : [],
    );
    return ranked(new TextEncoder().encode(self), [...new Set(addresses)]);
  };
  return [...new Set([...offered(true), ...offered(false)])].slice(0, MOST_NODES).map((host) => at(host, nodePort));
};

/** At an address of our own node are the relays that run here: kube-proxy would lead us to any. */
const ofExternalIps = (addresses: readonly string[], port: number, { nodes, self, onSelf = [] }: ManagedRelay) => {
  const own = nodes.find(({ metadata }) => metadata?.name === self)?.status?.addresses ?? [];
  const isOwn = (address: string): boolean => own.some((each) => each.address === address);
  return addresses
    .filter((address) => isIP(address) !== 0)
    .flatMap((address): readonly Endpoint[] => (isOwn(address) ? onSelf : [at(address, port)]));
};

/**
 * Ways to the relay that the product runs in the cluster, from where the cluster's network is not up yet, best first
 * (document 002): the Service's ExternalIPs, its load balancer's addresses, then its names, its NodePort at public
 * addresses of gateways, ready ones first. Never a name of the cluster's DNS. A client tries one after the other: those
 * before the node ports lead to relays that know of each other. Empty: there is no way yet.
 */
export const waysToManaged = (relay: ManagedRelay): Endpoint[] => {
  const { service, port: wanted } = relay;
  const port = service && relayPort(service, wanted);
  if (port === undefined) return [];
  const ways = [
    ...ofExternalIps(service!.spec?.externalIPs ?? [], port.port, relay),
    ...ofLoadBalancer(service!, port.port),
    ...(port.nodePort === undefined || port.nodePort === 0 ? [] : ofNodes(relay, port.nodePort)),
  ];
  return ways.filter(
    (way, index) => ways.findIndex(({ host, port }) => host === way.host && port === way.port) === index,
  );
};

/**
 * Relays by the nodes on which they run: each is one of its own, because such a node port answers where a relay is. Whoever
 * is registered with all of them needs no links between them, which would have to take the mesh.
 */
const servicesOfNodes = (relay: ManagedRelay, nodePort: number): RelayService[] => {
  const { nodes, gateways, self, onSelf = [] } = relay;
  const addressOf = publicAddresses(gateways);
  return nodes
    .flatMap((node): RelayService[] => {
      const name = node.metadata?.name ?? '';
      const address = addressOf.get(name);
      const outside = address === undefined ? [] : [at(address, nodePort)];
      const ways = name === self ? onSelf : outside;
      return ways.length === 0 ? [] : [{ name: `managed ${name}`, ways, isBalanced: true }];
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .slice(0, MOST_NODES);
};

/** The pool's services for `provider: managed`; none while there is no way. */
export const managedServices = (relay: ManagedRelay): RelayService[] => {
  const port = relay.service && relayPort(relay.service, relay.port);
  const { externalTrafficPolicy, externalIPs = [] } = relay.service?.spec ?? {};
  const isNamed = externalIPs.length > 0 || (relay.service?.status?.loadBalancer?.ingress ?? []).length > 0;
  if (port?.nodePort && externalTrafficPolicy === 'Local' && !isNamed) return servicesOfNodes(relay, port.nodePort);
  const ways = waysToManaged(relay);
  return ways.length === 0 ? [] : [{ name: 'managed', ways, isBalanced: true }];
};

/**
 * The pool's services for `provider: external`: one for each endpoint, since they may be relays that know nothing of each
 * other. @throws EndpointSyntaxError
 */
export const externalServices = (endpoints: readonly string[]): RelayService[] =>
  [...new Set(endpoints)].map((text) => ({ name: text, ways: [parseEndpoint(text)] }));
