import { FEATURE_DEFAULTS, type FeatureOptions } from '../features/options.ts';
import { FAMILIES, type FamilyOption } from './addresses.ts';

/** What a person can say about the lab to be brought up. */

export const PROTOCOLS = ['Auto', 'WireGuard', 'GENEVE', 'VXLAN', 'IPIP', 'None'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/**
 * How the sites are joined. pools: a pool of gateways each, every pool peered with every other, over the WAN. chain: only
 * pools of neighbours are peered, so that traffic between the ends passes the middle. mesh: LANs are routed to each
 * other and nodes of all sites link directly, without gateways. internal: LANs are routed, and gateways of Internal
 * pools, which have no external address, join the sites. nat: as pools, but no gateway can be called from outside: all
 * meet at a relay. mapped: as pools, but without a cloud: all gateways are behind 1:1 NAT, and what the NAT's address is
 * only the annotation external-address says, as an address or a DNS name.
 */
export const TOPOLOGIES = ['pools', 'chain', 'mesh', 'internal', 'nat', 'mapped'] as const;
export type Topology = (typeof TOPOLOGIES)[number];
/** Whether gateways have no external address: their pools are Internal. */
export const hasInternalPools = (topology: Topology): boolean => topology === 'internal' || topology === 'nat';
export const DATAPLANES = ['ebpf', 'netlink'] as const;
type Dataplane = (typeof DATAPLANES)[number];
/** How our apps run: process is quick to start and to stop; pods is how a cluster runs them, from our image by our chart. */
export const AGENTS = ['process', 'pods'] as const;
type Agents = (typeof AGENTS)[number];

/** Families of the nodes' addresses; same: those of the pods. */
export const UNDERLAYS = ['same', ...Object.keys(FAMILIES)] as readonly Underlay[];
export type Underlay = FamilyOption | 'same';

export interface LabOptions extends FeatureOptions {
  readonly sites: number;
  readonly gateways: number;
  readonly workers: number;
  /** Inside the sites. */
  readonly protocol: Protocol;
  /** Between gateways of different sites. */
  readonly between: Protocol;
  readonly topology: Topology;
  readonly ip: FamilyOption;
  readonly dataplane: Dataplane;
  readonly agents: Agents;
  /** Without Kubernetes: pods are network namespaces, and agents read objects from files. What follows needs it. See substrate.ts. */
  readonly fabric: boolean;
  readonly underlay: Underlay;
  /** What links between sites do to each packet. Delay: one way; reorder: packets that overtake the delayed ones. */
  readonly delayMs: number;
  readonly lossPercent: number;
  readonly reorderPercent: number;
}

/** What is not asked for. */
export const DEFAULTS: LabOptions = {
  sites: 2,
  gateways: 1,
  workers: 2,
  protocol: 'Auto',
  between: 'Auto',
  topology: 'pools',
  ip: 'ipv4',
  dataplane: 'ebpf',
  ...FEATURE_DEFAULTS,
  agents: 'process',
  fabric: false,
  underlay: 'same',
  delayMs: 0,
  lossPercent: 0,
  reorderPercent: 0,
};

/** As it is written on the command line. */
export const flagOf = (option: keyof LabOptions): string =>
  `--${option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** Least and most of each. */
export const bounds = {
  sites: [1, 8],
  gateways: [0, 4],
  workers: [0, 8],
  delayMs: [0, 1000],
  lossPercent: [0, 50],
  reorderPercent: [0, 100],
} as const;

export const IMPAIRMENTS = ['delayMs', 'lossPercent', 'reorderPercent'] as const;
/** Whether links between the sites are worse than the kernel has them. */
export const isImpaired = (options: LabOptions): boolean => IMPAIRMENTS.some((name) => options[name] > 0);
