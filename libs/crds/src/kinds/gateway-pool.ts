import {
  addressTexts,
  capabilities,
  cidrTexts,
  conditions,
  features,
  keyRotation,
  linkSettings,
  nameFitsLabel,
  nodeName,
  objectName,
  routableCidrs,
  SPEC,
  STATUS,
  wireGuardKey,
} from '../fields.ts';
import { l2Locator } from '../l2-fields.ts';
import { conditionColumn, defineKind, type ObjectOf } from '../kind.ts';
import { LAST_GATEWAY_WIREGUARD_PORT, MESH_WIREGUARD_PORT } from '../names.ts';
import { type Infer, integer, list, map, object, oneOf, optional, string } from '../schema.ts';

/** Atomic: an entry that another field manager added goes with the next write of the whole list. */
const names = (description: string) => list(string({ maxLength: 63 }), { description, as: 'atomic', maxItems: 1000 });

const gateway = object({
  name: nodeName('name of the Node'),
  siteName: optional(string({ description: 'The Site of the node.', maxLength: 63 })),
  internalIPs: optional(addressTexts('Internal addresses.')),
  externalIPs: optional(addressTexts('External addresses; an External pool uses the first as endpoint.')),
  healthEndpoints: optional(addressTexts('First address of each pod block: what probes are sent to.')),
  wireGuardPublicKey: wireGuardKey('Base64.'),
  ...keyRotation,
  gatewayWireguardPort: optional(
    integer({
      description: 'UDP. Unique among all gateways; links to this gateway use an interface wg<port> of their own.',
      minimum: MESH_WIREGUARD_PORT,
      maximum: LAST_GATEWAY_WIREGUARD_PORT,
    }),
  ),
  podCIDRs: optional(cidrTexts('The blocks of the node.')),
  tunnelProtocols: capabilities(),
  features: features(),
  l2Locator,
});
/** A gateway as its peers need to know it. */
export type Gateway = Infer<typeof gateway>;

const CONNECTED_SITES =
  'Sites that the pool serves (assigned to it, and its gateways can link with their nodes), and Sites that share a network with one of them by a SitePeering.';
const REACHABLE_SITES =
  'Sites to which a gateway of the pool has a route: those that the pool serves, and those whose pods it reaches through peered pools.';

export const gatewayPoolKind = defineKind({
  kind: 'GatewayPool',
  plural: 'gatewaypools',
  singular: 'gatewaypool',
  shortNames: ['gp'],
  description:
    'Nodes that carry traffic between sites. Several gateways of a pool share the load and stand in for each other.',
  hasStatus: true,
  columns: [
    { name: 'Type', type: 'string', jsonPath: '.spec.type' },
    { name: 'Nodes', type: 'integer', jsonPath: '.status.nodeCount', description: 'Nodes that are its gateways.' },
    {
      name: 'Connected Sites',
      type: 'string',
      jsonPath: '.status.connectedSites',
      description: CONNECTED_SITES,
    },
    {
      name: 'Reachable Sites',
      type: 'string',
      jsonPath: '.status.reachableSites',
      description: REACHABLE_SITES,
    },
    conditionColumn('Available', 'GatewaysAvailable', { description: 'It has gateways.' }),
    conditionColumn('Reporting', 'GatewaysReporting', { description: 'The agents of all gateways report.' }),
    conditionColumn('Forwarding', 'GatewaysForwarding', { description: 'No gateway says that it drops packets.' }),
  ],
  body: object(
    {
      spec: object(
        {
          type: optional(
            oneOf(['External', 'Internal', ''], {
              description:
                'External (also when empty): peers use the gateway’s external address. Internal: gateways without an external address.',
            }),
          ),
          nodeSelector: map(string({ maxLength: 63 }), {
            description:
              'Labels that a gateway node has, all of them. Use at least one that a kubelet cannot set on its own Node: node-restriction.kubernetes.io/NAME.',
            minProperties: 1,
            maxProperties: 32,
          }),
          nodeNames: optional(
            list(nodeName('name of the Node'), {
              description:
                'Nodes that can be gateways, if they have the labels too; absent: every node with the labels.',
              as: 'set',
              minItems: 1,
              maxItems: 1000,
            }),
          ),
          routedCidrs: optional(routableCidrs('Further destinations behind the pool.', { maxItems: 256 })),
          ...linkSettings,
        },
        SPEC,
      ),
      status: optional(
        object(
          {
            nodes: optional(list(gateway, { description: 'The gateways, by name.', as: 'atomic', maxItems: 1000 })),
            nodeCount: optional(integer({ description: 'How many gateways there are.', minimum: 0, maximum: 1000 })),
            connectedSites: optional(names(CONNECTED_SITES)),
            reachableSites: optional(names(REACHABLE_SITES)),
            conditions,
          },
          STATUS,
        ),
      ),
    },
    { rules: [nameFitsLabel] },
  ),
});
export type GatewayPool = ObjectOf<typeof gatewayPoolKind>;

const hop = object({
  type: oneOf(['Site', 'GatewayPool'], { description: 'Kind of the object.' }),
  name: string({ description: 'Its name.', maxLength: 63 }),
});
export type RouteHop = Infer<typeof hop>;

const path = (description: string) => list(hop, { description, as: 'atomic', maxItems: 32 });

const advertisedRoute = object({
  type: oneOf(['NodeCidr', 'PodCidr', 'RoutedCidr', 'L2LocatorBlock'], { description: 'What lives in the block.' }),
  source: optional(string({ description: 'The object that the block stands in.', maxLength: 253 })),
  intermediateHops: optional(path('Hops between the gateway and the source.')),
  paths: optional(
    list(path('Hops from the source to this gateway.'), {
      description: 'Ways from the source to this gateway.',
      as: 'atomic',
      maxItems: 100,
    }),
  ),
});
export type AdvertisedRoute = Infer<typeof advertisedRoute>;

export const gatewayPoolNodeKind = defineKind({
  kind: 'GatewayPoolNode',
  plural: 'gatewaypoolnodes',
  singular: 'gatewaypoolnode',
  shortNames: ['gpn'],
  description:
    'What one gateway offers to reach. Named as its Node; gateway-health writes the spec, the gateway’s agent the status.',
  hasStatus: true,
  columns: [
    { name: 'Pool', type: 'string', jsonPath: '.spec.gatewayPool' },
    { name: 'Site', type: 'string', jsonPath: '.spec.site' },
    { name: 'Updated', type: 'date', jsonPath: '.status.lastUpdated' },
  ],
  body: object({
    spec: object(
      {
        nodeName: nodeName('The Node.'),
        gatewayPool: objectName('The GatewayPool.'),
        site: optional(string({ description: 'The Site of the node.', maxLength: 63 })),
      },
      SPEC,
    ),
    status: optional(
      object(
        {
          lastUpdated: optional(
            string({ description: 'When the agent last wrote.', format: 'date-time', maxLength: 64 }),
          ),
          routes: optional(
            map(advertisedRoute, {
              description: 'What the gateway offers to reach, by block (CIDR).',
              maxProperties: 1000,
            }),
          ),
          conditions,
        },
        STATUS,
      ),
    ),
  }),
});
export type GatewayPoolNode = ObjectOf<typeof gatewayPoolNodeKind>;
