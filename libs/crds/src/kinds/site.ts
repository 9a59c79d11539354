import {
  capabilities,
  addressTexts,
  cidrs,
  cidrTexts,
  conditions,
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
import { l2Locator, locatorText } from '../l2-fields.ts';
import { conditionColumn, defineKind, type ObjectOf } from '../kind.ts';
import { MAX_SLICE_NODES } from '../names.ts';
import { boolean, type CelRule, type Infer, integer, list, object, optional, string } from '../schema.ts';

const DEFAULT_IPV4_BLOCK = 24;
/** An IPv6 pool without a block size is cut into blocks this many bits longer than its first pool. */
const DEFAULT_IPV6_STEP = 16;

const enabled = '(!has(self.assignmentEnabled) || self.assignmentEnabled)';
const pools = (family: 4 | 6): string => `self.cidrBlocks.filter(c, isCIDR(c) && cidr(c).ip().family() == ${family})`;

// CEL's cost limit rules out numbers in these messages (`string(int)` has no bound for it); the pools can be named.
const blockSizeRules: readonly CelRule[] = [
  {
    rule: `!${enabled} || ${pools(4)}.all(c, cidr(c).prefixLength() < (has(self.nodeBlockSizes) && has(self.nodeBlockSizes.ipv4) ? self.nodeBlockSizes.ipv4 : ${DEFAULT_IPV4_BLOCK}))`,
    message: `nodeBlockSizes.ipv4 (${DEFAULT_IPV4_BLOCK} when not set) must be longer than the prefix length of every IPv4 pool in cidrBlocks: a node’s block is a part of its pool`,
    fieldPath: '.nodeBlockSizes.ipv4',
  },
  {
    rule: `!${enabled} || !has(self.nodeBlockSizes) || !has(self.nodeBlockSizes.ipv6) || ${pools(6)}.all(c, cidr(c).prefixLength() < self.nodeBlockSizes.ipv6 && self.nodeBlockSizes.ipv6 <= cidr(c).prefixLength() + ${DEFAULT_IPV6_STEP})`,
    message: `nodeBlockSizes.ipv6 must be 1 to ${DEFAULT_IPV6_STEP} bits longer than the prefix length of every IPv6 pool in cidrBlocks`,
    fieldPath: '.nodeBlockSizes.ipv6',
  },
];

const podCidrAssignment = object(
  {
    assignmentEnabled: optional(
      boolean({ description: 'false: no node gets a block from here, but the blocks are still routed.' }),
      true,
    ),
    cidrBlocks: routableCidrs(
      'Pools that node blocks are cut from, IPv4 and IPv6; used in this order within a family.',
      {
        minItems: 1,
        maxItems: 64,
      },
    ),
    nodeBlockSizes: optional(
      object(
        {
          ipv4: optional(
            integer({
              description: 'Prefix length of a node’s IPv4 block; 24 when not set.',
              minimum: 16,
              maximum: 28,
            }),
          ),
          ipv6: optional(
            integer({
              description:
                'Prefix length of a node’s IPv6 block; when not set, 16 bits longer than the first IPv6 pool (at most 128).',
              minimum: 1,
              maximum: 128,
            }),
          ),
        },
        { description: 'How large a node’s block is.' },
      ),
    ),
    nodeRegex: optional(
      list(string({ maxLength: 1024 }), {
        description:
          'Nodes whose name matches any of these get blocks from here (RE2, not anchored); empty: all nodes of the site.',
        as: 'atomic',
        maxItems: 64,
      }),
    ),
    priority: optional(
      integer({
        description:
          'The assignment with the lowest number that matches a node serves it; on a tie the first in the list.',
        minimum: -2_147_483_648,
        maximum: 2_147_483_647,
      }),
      100,
    ),
  },
  { rules: blockSizeRules },
);
export type PodCidrAssignment = Infer<typeof podCidrAssignment>;

/** Prefix length of the block that a node gets. @param firstPoolLength of the first pool of the family in the assignment */
export const nodeBlockLength = (
  family: 4 | 6,
  firstPoolLength: number,
  { nodeBlockSizes }: Pick<PodCidrAssignment, 'nodeBlockSizes'>,
): number =>
  family === 4
    ? (nodeBlockSizes?.ipv4 ?? DEFAULT_IPV4_BLOCK)
    : (nodeBlockSizes?.ipv6 ?? Math.min(firstPoolLength + DEFAULT_IPV6_STEP, 128));

export const siteKind = defineKind({
  kind: 'Site',
  plural: 'sites',
  singular: 'site',
  shortNames: ['st'],
  description: 'A place whose nodes reach each other directly: a cloud region, an edge location, a rack.',
  hasStatus: true,
  columns: [
    { name: 'Node CIDRs', type: 'string', jsonPath: '.spec.nodeCidrs' },
    { name: 'Pod CIDR Assignments', type: 'string', jsonPath: '.spec.podCidrAssignments[*].cidrBlocks' },
    {
      name: 'Non-Gateway Nodes',
      type: 'integer',
      jsonPath: '.status.nodeCount',
      description: 'Nodes of the site without its gateways, which stand in their GatewayPool.',
    },
    { name: 'Slices', type: 'integer', jsonPath: '.status.sliceCount' },
    conditionColumn('CIDRs Valid', 'NodeCidrsValid', { description: 'No earlier Site has the same addresses.' }),
    conditionColumn('Nodes Accepted', 'NodesAccepted', { description: 'What its nodes state of themselves is used.' }),
    { name: 'Protocol', type: 'string', jsonPath: '.spec.tunnelProtocol', priority: 1 },
  ],
  body: object(
    {
      spec: object(
        {
          nodeCidrs: routableCidrs('A node with an internal address in one of these is in the site.', {
            minItems: 1,
            maxItems: 256,
          }),
          podCidrAssignments: list(podCidrAssignment, {
            description: 'Where the pod addresses of the site come from; also what is routed to the site.',
            as: 'atomic',
            minItems: 1,
            maxItems: 32,
          }),
          manageCniPlugin: optional(
            boolean({
              description:
                'false: another CNI plugin serves the nodes; no blocks are allocated and no CNI configuration is written.',
            }),
            true,
          ),
          nonMasqueradeCIDRs: optional(
            cidrs('Destinations that pods reach with their own address.', { maxItems: 256 }),
          ),
          allowedSourceCidrs: optional(
            routableCidrs(
              'Hosts beside the nodes of the site that are no nodes, and whose packets these nodes forward into the overlay: an API server outside of the cluster. Other sites take them if they are inside nodeCidrs.',
              { maxItems: 256 },
            ),
          ),
          podTunnelCidrs: optional(
            cidrs(
              'Destinations that are no pods and to which pods of the site may send tunnel packets: VXLAN and GENEVE at their standard ports, IP in IP, GRE.',
              { maxItems: 256 },
            ),
          ),
          ...linkSettings,
        },
        SPEC,
      ),
      status: optional(
        object(
          {
            nodeCount: optional(
              integer({
                description: 'Nodes of the site without its gateways, which are counted by their GatewayPool.',
                minimum: 0,
                maximum: 1_000_000,
              }),
            ),
            sliceCount: optional(integer({ description: 'SiteNodeSlices of the site.', minimum: 0, maximum: 10_000 })),
            l2LocatorBlock: locatorText(
              'The IPv6 /52 of Mesh.spec.l2.locatorPrefix that the nodes of the site get their locators from; absent: none.',
            ),
            conditions,
          },
          STATUS,
        ),
      ),
    },
    { rules: [nameFitsLabel] },
  ),
});
export type Site = ObjectOf<typeof siteKind>;

const siteNode = object({
  name: nodeName('name of the Node'),
  wireGuardPublicKey: optional(wireGuardKey('Base64; absent until the node agent has published it.')),
  ...keyRotation,
  internalIPs: optional(addressTexts('Internal addresses in the order of the Node’s status.')),
  podCIDRs: optional(cidrTexts('The blocks of the node.')),
  tunnelProtocols: capabilities(),
  l2Locator,
});
/** A node as its peers need to know it. */
export type SiteNode = Infer<typeof siteNode>;

export const siteNodeSliceKind = defineKind({
  kind: 'SiteNodeSlice',
  plural: 'sitenodeslices',
  singular: 'sitenodeslice',
  shortNames: ['sns'],
  description: 'Up to 500 nodes of a Site, by name. Written by site-membership; node agents read it.',
  hasStatus: false,
  columns: [
    { name: 'Site', type: 'string', jsonPath: '.siteName' },
    { name: 'Index', type: 'integer', jsonPath: '.sliceIndex' },
    { name: 'Nodes', type: 'integer', jsonPath: '.nodeCount' },
  ],
  body: object({
    siteName: objectName('The Site.'),
    sliceIndex: integer({ description: 'From 0.', minimum: 0, maximum: 10_000 }),
    nodeCount: optional(integer({ description: 'Nodes in this slice.', minimum: 0, maximum: MAX_SLICE_NODES })),
    nodes: optional(
      list(siteNode, {
        description: 'Nodes of the site, by name; gateways stand in the status of their GatewayPool instead.',
        as: 'atomic',
        maxItems: MAX_SLICE_NODES,
      }),
    ),
  }),
});
export type SiteNodeSlice = ObjectOf<typeof siteNodeSliceKind>;
