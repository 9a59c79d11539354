import { conditions, linkSettings, objectNames, SPEC, STATUS } from '../fields.ts';
import { conditionColumn, defineKind, type ObjectOf } from '../kind.ts';
import { boolean, integer, object, optional } from '../schema.ts';

const enabled = optional(boolean({ description: 'false: as if the object did not exist.' }), true);

const accepted = conditionColumn('Accepted', 'Accepted', { description: 'All named objects exist.' });

export const sitePeeringKind = defineKind({
  kind: 'SitePeering',
  plural: 'sitepeerings',
  singular: 'sitepeering',
  shortNames: ['spr'],
  description: 'Sites whose nodes reach each other’s internal addresses, without a gateway between them.',
  hasStatus: true,
  columns: [
    { name: 'Sites', type: 'string', jsonPath: '.spec.sites' },
    { name: 'Enabled', type: 'boolean', jsonPath: '.spec.enabled' },
    { name: 'Mesh', type: 'boolean', jsonPath: '.spec.meshNodes' },
    accepted,
    {
      name: 'Nodes',
      type: 'integer',
      jsonPath: '.status.totalNodeCount',
      description: 'Nodes of the peered sites, gateways too.',
      priority: 1,
    },
  ],
  body: object({
    spec: object(
      {
        enabled,
        sites: objectNames('The sites, two or more.', 2),
        meshNodes: optional(
          boolean({ description: 'Nodes of the sites link directly. false: only gateways do.' }),
          true,
        ),
        ...linkSettings,
      },
      SPEC,
    ),
    status: optional(
      object(
        {
          peeredSiteCount: optional(integer({ description: 'Named Sites that exist.', minimum: 0, maximum: 256 })),
          totalNodeCount: optional(
            integer({ description: 'Nodes of these sites, gateways too.', minimum: 0, maximum: 1_000_000 }),
          ),
          conditions,
        },
        STATUS,
      ),
    ),
  }),
});
export type SitePeering = ObjectOf<typeof sitePeeringKind>;

export const siteGatewayPoolAssignmentKind = defineKind({
  kind: 'SiteGatewayPoolAssignment',
  plural: 'sitegatewaypoolassignments',
  singular: 'sitegatewaypoolassignment',
  shortNames: ['sgpa'],
  description: 'Which gateway pools serve which sites.',
  hasStatus: true,
  columns: [
    { name: 'Sites', type: 'string', jsonPath: '.spec.sites' },
    { name: 'Pools', type: 'string', jsonPath: '.spec.gatewayPools' },
    { name: 'Enabled', type: 'boolean', jsonPath: '.spec.enabled' },
    accepted,
  ],
  body: object({
    spec: object(
      {
        enabled,
        sites: objectNames('The sites.', 1),
        gatewayPools: objectNames('The pools that serve each of them.', 1),
        ...linkSettings,
      },
      SPEC,
    ),
    status: optional(object({ conditions }, STATUS)),
  }),
});
export type SiteGatewayPoolAssignment = ObjectOf<typeof siteGatewayPoolAssignmentKind>;

export const gatewayPoolPeeringKind = defineKind({
  kind: 'GatewayPoolPeering',
  plural: 'gatewaypoolpeerings',
  singular: 'gatewaypoolpeering',
  shortNames: ['gpp'],
  description: 'Gateway pools whose gateways link with each other and pass on what they reach.',
  hasStatus: true,
  columns: [
    { name: 'Pools', type: 'string', jsonPath: '.spec.gatewayPools' },
    { name: 'Enabled', type: 'boolean', jsonPath: '.spec.enabled' },
    accepted,
  ],
  body: object({
    spec: object(
      {
        enabled,
        gatewayPools: objectNames('The pools, two or more.', 2),
        ...linkSettings,
      },
      SPEC,
    ),
    status: optional(object({ conditions }, STATUS)),
  }),
});
export type GatewayPoolPeering = ObjectOf<typeof gatewayPoolPeeringKind>;
