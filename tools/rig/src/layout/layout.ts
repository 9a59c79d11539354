import { FAMILIES, type Family, hostOf, PLANS } from './addresses.ts';
import { checkOptions } from './check-options.ts';
import { DEFAULTS, hasInternalPools, type LabOptions } from './options.ts';
import { substrateLayout } from './substrate.ts';

/** What the lab consists of, as a value: every name and address is decided here, before anything is made. */

type Role = 'control-plane' | 'gateway' | 'worker';

export interface LabNode {
  readonly name: string;
  readonly site: string;
  readonly role: Role;
  /** Addresses on the site's LAN, one of each family; the first is the primary one. */
  readonly internalIps: readonly string[];
  /** The primary of them. */
  readonly internalIp: string;
  /** Addresses by which other sites reach the node; on an interface of its own, or 1:1 NAT at the site's router. */
  readonly external?: { readonly ips: readonly string[]; readonly ip: string; readonly by: 'interface' | 'router' };
}

export interface LabSite {
  readonly name: string;
  /** One of each family of the underlay, here and below. */
  readonly lans: readonly string[];
  readonly routerLanIps: readonly string[];
  readonly routerWanIps: readonly string[];
  /** One of each family of pods. */
  readonly podPools: readonly string[];
  readonly nodes: readonly LabNode[];
}

export interface LabLayout {
  readonly options: LabOptions;
  /** Of pods and Services. */
  readonly families: readonly Family[];
  /** Of nodes, LANs and the WAN. */
  readonly underlayFamilies: readonly Family[];
  readonly sites: readonly LabSite[];
  readonly nodes: readonly LabNode[];
  /** Without Kubernetes: the first node, which plays no such part. */
  readonly controlPlane: LabNode & { readonly external: { readonly ips: readonly string[]; readonly ip: string } };
}

/** Namespace of each part; all of the lab's begin with this. */
export const NAMESPACE_PREFIX = 'ub-';
export const namespaceOf = (name: string): string => `${NAMESPACE_PREFIX}${name}`;
export const routerName = (site: string): string => `${site}-router`;

/** Host numbers on the WAN. */
const [WORLD, CONTROL_PLANE] = [250, 99];
export const WAN = { worldName: 'world', name: 'wan', partnerPort: 'partner' } as const;
export const worldIps = ({ underlayFamilies }: Pick<LabLayout, 'underlayFamilies'>): string[] =>
  underlayFamilies.map((family) => PLANS[family].wanHost(WORLD));

const underlayOf = ({ ip, underlay }: LabOptions): readonly Family[] => FAMILIES[underlay === 'same' ? ip : underlay];

const siteOf = (index: number, options: LabOptions): LabSite => {
  const name = `s${index}`;
  const plans = underlayOf(options).map((family) => PLANS[family]);
  const internal = (host: number) => {
    const internalIps = plans.map((plan) => plan.lanHost(index, host));
    return { internalIps, internalIp: internalIps[0]! };
  };
  const external = (host: number, by: 'interface' | 'router') => {
    const ips = plans.map((plan) => plan.wanHost(host));
    return { external: { ips, ip: ips[0]!, by } };
  };
  const gatewayBy = index % 2 === 1 && options.topology !== 'mapped' ? 'interface' : 'router';
  const nodes: LabNode[] = [];
  if (index === 1 && substrateLayout(options).hasControlPlane) {
    const role = 'control-plane';
    nodes.push({ name: `${name}-cp`, site: name, role, ...internal(10), ...external(CONTROL_PLANE, 'router') });
  }
  for (let g = 1; g <= options.gateways; g++) {
    const address = hasInternalPools(options.topology) ? {} : external(100 + 10 * index + g, gatewayBy);
    nodes.push({ name: `${name}-g${g}`, site: name, role: 'gateway', ...internal(20 + g), ...address });
  }
  for (let w = 1; w <= options.workers; w++) {
    nodes.push({ name: `${name}-w${w}`, site: name, role: 'worker', ...internal(30 + w) });
  }
  return {
    name,
    lans: plans.map((plan) => plan.lan(index)),
    routerLanIps: internal(1).internalIps,
    routerWanIps: plans.map((plan) => plan.wanHost(index)),
    podPools: FAMILIES[options.ip].map((family) => PLANS[family].podPool(index)),
    nodes,
  };
};

/** @throws Error for options out of bounds */
export const layoutOf = (given: Partial<LabOptions>): LabLayout => {
  const options = checkOptions({ ...DEFAULTS, ...given });
  const sites = Array.from({ length: options.sites }, (_, index) => siteOf(index + 1, options));
  const nodes = sites.flatMap((site) => site.nodes);
  const controlPlane = nodes[0] as LabLayout['controlPlane'];
  const families = FAMILIES[options.ip];
  return { options, families, underlayFamilies: underlayOf(options), sites, nodes, controlPlane };
};

/** The annotation external-address of a gateway that no cloud gives one: of every second site a DNS name. */
export const announcedAddress = ({ options, sites }: LabLayout, node: LabNode): string | undefined => {
  if (options.topology !== 'mapped' || node.role !== 'gateway' || !node.external) return undefined;
  const isNamed = sites.findIndex(({ name }) => name === node.site) % 2 === 1;
  return isNamed ? gatewayName(node.name) : node.external.ips.join(',');
};
export const gatewayName = (node: string): string => `${node}.gateways.lab`;

/** Whether LANs are routed to each other, instead of each being behind a NAT of its own. */
export const isRouted = ({ options }: LabLayout): boolean =>
  options.topology === 'mesh' || options.topology === 'internal';

export const servicesOf = (layout: LabLayout) => layout.families.map((family) => PLANS[family].services);

/** Where a node reaches the API server: on its own LAN, or by the control plane's external address. Never by the overlay. */
export const API_SERVER_PORT = 6443;
/** The same for pods, which all have one configuration: each node knows the address of its site under this name. */
export const API_SERVER_NAME = 'api.lab';
export const apiServerIp = (layout: LabLayout, site: string): string =>
  site === layout.controlPlane.site ? layout.controlPlane.internalIp : layout.controlPlane.external.ip;
export const apiServerUrl = (layout: LabLayout, site: string): string =>
  `https://${hostOf(apiServerIp(layout, site))}:${API_SERVER_PORT}`;
