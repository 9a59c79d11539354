import { FEATURES } from '../features/features.ts';
import { PLANS } from '../layout/addresses.ts';
import { isRouted, type LabLayout, type LabSite } from '../layout/layout.ts';
import { hasInternalPools } from '../layout/options.ts';

/** The objects that a person applies to have the sites and what joins them: the same on every substrate. */

const GROUP = 'net.unbounded-cloud.io';
const kindOf = (kind: string, name: string, spec: object): object => ({
  apiVersion: `${GROUP}/v1alpha1`,
  kind,
  metadata: { name },
  spec,
});

const siteObject = (site: LabSite, layout: LabLayout): object =>
  kindOf('Site', site.name, {
    nodeCidrs: site.lans,
    podCidrAssignments: [
      {
        cidrBlocks: site.podPools,
        nodeBlockSizes: Object.fromEntries(
          layout.families.map((family) => [`ipv${family}`, PLANS[family].nodeBlock] as const),
        ),
      },
    ],
    tunnelProtocol: layout.options.protocol,
  });

export const poolName = (site: string): string => `${site}-gateways`;

const between = ({ options }: LabLayout): object =>
  options.between === 'Auto' ? {} : { tunnelProtocol: options.between };

/** Which pools are peered: all with all, or in a chain each with the next. */
const poolPeerings = (layout: LabLayout): object[] => {
  const names = layout.sites.map(({ name }) => poolName(name));
  if (names.length < 2) return [];
  const peering = (name: string, gatewayPools: readonly (string | undefined)[]): object =>
    kindOf('GatewayPoolPeering', name, { gatewayPools, ...between(layout) });
  if (layout.options.topology !== 'chain') return [peering('all', names)];
  return names.slice(1).map((name, index) => peering(`chain-${index + 1}`, [names[index], name]));
};

interface Named {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: object;
}

/** What several features ask for of one object, as one. */
const joined = (objects: readonly object[]): object[] => [
  ...Map.groupBy(objects as readonly Named[], ({ kind, metadata }) => `${kind}/${metadata.name}`)
    .values()
    .map(([first, ...others]) =>
      others.length === 0
        ? first!
        : { ...first!, spec: Object.assign({}, first!.spec, ...others.map(({ spec }) => spec)) as object },
    ),
];

/** The sites, their gateway pools, and what joins them. */
export const siteObjects = (layout: LabLayout): object[] => {
  const { gateways, topology } = layout.options;
  const pools = gateways > 0 && topology !== 'mesh' ? layout.sites : [];
  const type = hasInternalPools(topology) ? 'Internal' : 'External';
  const sites = layout.sites.map(({ name }) => name);
  return [
    ...layout.sites.map((site) => siteObject(site, layout)),
    ...pools.map(({ name }) =>
      kindOf('GatewayPool', poolName(name), {
        type,
        nodeSelector: { 'node-restriction.kubernetes.io/gateway-of': name },
      }),
    ),
    ...pools.map(({ name }) =>
      kindOf('SiteGatewayPoolAssignment', name, { sites: [name], gatewayPools: [poolName(name)] }),
    ),
    ...(pools.length > 0 ? poolPeerings(layout) : []),
    ...joined(FEATURES.flatMap(({ manifests }) => manifests(layout))),
    ...(isRouted(layout) && sites.length > 1
      ? [kindOf('SitePeering', 'routed', { sites, meshNodes: topology === 'mesh', ...between(layout) })]
      : []),
  ];
};
