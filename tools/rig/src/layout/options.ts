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

/** What becomes of UDP at the sites' borders; either way there is a relay outside. */
export const BLOCK_UDP = ['all', 'none'] as const;
export type BlockUdp = (typeof BLOCK_UDP)[number];

export interface LabOptions {
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
  /** off: there is no relay, and UDP passes. */
  readonly blockUdp: BlockUdp | 'off';
  readonly agents: Agents;
  /** Without Kubernetes: pods are network namespaces, and agents read objects from files. What follows needs it. */
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
  blockUdp: 'off',
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

/** What a lab without Kubernetes has and a cluster has not, and the other way round. @throws Error */
const checkKind = (options: LabOptions): void => {
  if (!options.fabric) {
    const only = (['underlay', ...IMPAIRMENTS] as const).find((name) => options[name] !== DEFAULTS[name]);
    if (only) throw new Error(`${flagOf(only)} ${options[only]}: only --fabric has it`);
    return;
  }
  if (options.agents === 'pods')
    throw new Error('--agents pods: with --fabric there is no Kubernetes to run them; process would be right');
  if (options.gateways + options.workers === 0)
    throw new Error('--gateways 0 --workers 0: with --fabric there is no node then');
  if (options.reorderPercent > 0 && options.delayMs === 0)
    throw new Error(
      `--reorder-percent ${options.reorderPercent}: only delayed packets are overtaken; give --delay-ms too`,
    );
};

/** Only WireGuard over external addresses goes by a relay. @throws Error */
const checkRelay = ({ blockUdp, topology, between }: LabOptions): void => {
  if (blockUdp === 'off') {
    if (topology === 'nat')
      throw new Error('--topology nat: sites meet at a relay only; --block-udp all or none brings one along');
    return;
  }
  if (topology === 'mesh' || topology === 'internal')
    throw new Error(
      `--block-udp ${blockUdp}: with --topology ${topology} sites have no external addresses; pools or chain would be right`,
    );
  if (between !== 'Auto' && between !== 'WireGuard')
    throw new Error(
      `--block-udp ${blockUdp}: a relay carries no ${between}; --between Auto or WireGuard would be right`,
    );
};

/** @throws Error that names the option and its bounds */
export const checkOptions = (options: LabOptions): LabOptions => {
  for (const [name, [low, high]] of Object.entries(bounds)) {
    const value = options[name as keyof typeof bounds];
    if (!Number.isInteger(value) || value < low || value > high) {
      throw new Error(
        `${flagOf(name as keyof typeof bounds)} ${value}: a whole number from ${low} to ${high} would be right`,
      );
    }
  }
  if (options.sites > 1 && options.gateways < 1 && options.topology !== 'mesh')
    throw new Error('--gateways 0: sites that are to be joined need at least 1');
  checkKind(options);
  checkRelay(options);
  return options;
};
