/** What the lab consists of, as a value: every name and address is decided here, before anything is made. */

export const PROTOCOLS = ['Auto', 'WireGuard', 'GENEVE', 'VXLAN', 'IPIP', 'None'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

export interface LabOptions {
  readonly sites: number;
  readonly gateways: number;
  readonly workers: number;
  readonly protocol: Protocol;
}

export type Role = 'control-plane' | 'gateway' | 'worker';

export interface LabNode {
  readonly name: string;
  readonly site: string;
  readonly role: Role;
  /** Address on the site's LAN. */
  readonly internalIp: string;
  /** Address by which other sites reach the node; on an interface of its own, or 1:1 NAT at the site's router. */
  readonly external?: { readonly ip: string; readonly by: 'interface' | 'router' };
}

export interface LabSite {
  readonly name: string;
  readonly lan: string;
  readonly routerLanIp: string;
  readonly routerWanIp: string;
  readonly podPool: string;
  readonly nodes: readonly LabNode[];
}

export interface LabLayout {
  readonly options: LabOptions;
  readonly sites: readonly LabSite[];
  readonly nodes: readonly LabNode[];
  readonly controlPlane: LabNode & { readonly external: { readonly ip: string } };
}

/** Namespace of each part; all of the lab's begin with this. */
export const NAMESPACE_PREFIX = 'ub-';
export const namespaceOf = (name: string): string => `${NAMESPACE_PREFIX}${name}`;
export const routerName = (site: string): string => `${site}-router`;

export const WAN = {
  prefix: '203.0.113.0/24',
  length: 24,
  worldIp: '203.0.113.250',
  worldName: 'world',
  name: 'wan',
} as const;
export const SERVICES = { cidr: '10.96.0.0/16', apiServer: '10.96.0.1', dns: '10.96.0.10' } as const;
export const POD_SUPERNET = '100.64.0.0/10';

const bounds = { sites: [1, 8], gateways: [0, 4], workers: [0, 8] } as const;

/** @throws Error that names the option and its bounds */
export const checkOptions = (options: LabOptions): LabOptions => {
  for (const [name, [low, high]] of Object.entries(bounds)) {
    const value = options[name as keyof typeof bounds];
    if (!Number.isInteger(value) || value < low || value > high) {
      throw new Error(`--${name} ${value}: a whole number from ${low} to ${high} would be right`);
    }
  }
  if (options.sites > 1 && options.gateways < 1)
    throw new Error('--gateways 0: sites that are to be joined need at least 1');
  return options;
};

const siteOf = (index: number, options: LabOptions): LabSite => {
  const name = `s${index}`;
  const at = (host: number) => `10.${index}.0.${host}`;
  const gatewayBy = index % 2 === 1 ? 'interface' : 'router';
  const nodes: LabNode[] = [];
  if (index === 1) {
    nodes.push({
      name: `${name}-cp`,
      site: name,
      role: 'control-plane',
      internalIp: at(10),
      external: { ip: '203.0.113.99', by: 'router' },
    });
  }
  for (let g = 1; g <= options.gateways; g++) {
    const external = { ip: `203.0.113.${100 + 10 * index + g}`, by: gatewayBy } as const;
    nodes.push({ name: `${name}-g${g}`, site: name, role: 'gateway', internalIp: at(20 + g), external });
  }
  for (let w = 1; w <= options.workers; w++) {
    nodes.push({ name: `${name}-w${w}`, site: name, role: 'worker', internalIp: at(30 + w) });
  }
  const wan = `203.0.113.${index}`;
  return {
    name,
    lan: `10.${index}.0.0/24`,
    routerLanIp: at(1),
    routerWanIp: wan,
    podPool: `100.${64 + index}.0.0/16`,
    nodes,
  };
};

/** @throws Error for options out of bounds */
export const layoutOf = (options: LabOptions): LabLayout => {
  checkOptions(options);
  const sites = Array.from({ length: options.sites }, (_, index) => siteOf(index + 1, options));
  const nodes = sites.flatMap((site) => site.nodes);
  return { options, sites, nodes, controlPlane: nodes[0] as LabLayout['controlPlane'] };
};

/** Where a node reaches the API server: on its own LAN, or by the control plane's external address. Never by the overlay. */
export const apiServerUrl = (layout: LabLayout, site: string): string =>
  `https://${site === layout.controlPlane.site ? layout.controlPlane.internalIp : layout.controlPlane.external.ip}:6443`;
