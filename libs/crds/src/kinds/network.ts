import { address, labelSelector } from '../egress-fields.ts';
import { conditions, nameFitsLabel, nodeName, objectName, routableCidrs, SPEC, STATUS } from '../fields.ts';
import { conditionColumn, defineKind, type ObjectOf } from '../kind.ts';
import { MAX_L2_NETWORK_NODES, MAX_L2_NETWORK_NUMBER, MAX_L2_SEGMENTS } from '../names.ts';
import { type CelRule, integer, list, object, oneOf, optional } from '../schema.ts';

/** One LAN across nodes and sites. */

/** RFC 8200 5: what every network carries that IPv6 may be used in. */
const LEAST_MTU = 1280;

const segment = object({
  name: objectName('Name of the segment.'),
  reaches: optional(
    list(objectName('name of another segment'), {
      description: 'Segments whose endpoints may talk with those of this one, in both directions.',
      as: 'set',
      maxItems: MAX_L2_SEGMENTS,
    }),
  ),
});

const policy = (description: string) => optional(oneOf(['Drop', 'Replicate'], { description }), 'Drop' as const);

/** Texts of unknown length are put in by format: the API server takes what is added to them for endless. */
const rules: readonly CelRule[] = [
  {
    rule: `!has(self.gateways) || self.gateways.all(g, !isIP(g) || self.prefixes.exists(p, isCIDR(p) && cidr(p).containsIP(g)))`,
    message: 'must be addresses inside of spec.prefixes',
    messageExpression: `'gateways %s: must be inside of the prefixes %s'.format([self.prefixes.exists(p, isCIDR(p) && cidr(p).containsIP(self.gateways[0])) ? self.gateways[1] : self.gateways[0], self.prefixes.join(', ')])`,
    fieldPath: '.gateways',
  },
  {
    rule: `!has(self.gateways) || size(self.gateways) < 2 || !isIP(self.gateways[0]) || !isIP(self.gateways[1]) || ip(self.gateways[0]).family() != ip(self.gateways[1]).family()`,
    message: 'must have at most one address of each IP family',
    fieldPath: '.gateways',
  },
  {
    rule: `!has(self.segments) || self.segments.all(s, !has(s.reaches) || s.reaches.all(r, self.segments.exists(o, o.name == r)))`,
    message: 'reaches must name segments of this network',
    fieldPath: '.segments',
  },
];

export const networkKind = defineKind({
  kind: 'Network',
  plural: 'networks',
  singular: 'network',
  shortNames: ['lan'],
  description: 'One LAN, stretched over the nodes of all sites that host endpoints of it. Of the feature l2-networks.',
  hasStatus: true,
  columns: [
    { name: 'Prefixes', type: 'string', jsonPath: '.spec.prefixes' },
    { name: 'Number', type: 'integer', jsonPath: '.status.number', priority: 1 },
    { name: 'MTU', type: 'integer', jsonPath: '.status.mtu' },
    { name: 'Endpoints', type: 'integer', jsonPath: '.status.endpoints' },
    conditionColumn('Ready', 'Ready'),
  ],
  body: object(
    {
      spec: object(
        {
          prefixes: routableCidrs(
            'Address blocks of the network, of either family; endpoints have addresses in them.',
            {
              minItems: 1,
              maxItems: 8,
            },
          ),
          gateways: optional(
            list(address('192.0.2.1 or 2001:db8::1'), {
              description: 'Addresses of the network’s routers, one of each family at most: no endpoint gets them.',
              as: 'set',
              maxItems: 2,
            }),
          ),
          namespaceSelector: labelSelector('Namespaces whose pods may attach; empty: all.'),
          trustedNamespaceSelector: optional(
            labelSelector(
              'Namespaces whose pods may send what routers and DHCP servers send; absent: none. Empty: all that may attach.',
            ),
          ),
          segments: optional(
            list(segment, {
              description:
                'Parts of the network. Endpoints of one segment reach each other, those of different ones only where reaches says so. Absent: all are in one.',
              as: 'map',
              keys: ['name'],
              maxItems: MAX_L2_SEGMENTS,
            }),
          ),
          unknownUnicast: policy('Frames for a MAC address that no endpoint has.'),
          broadcast: policy('Broadcast frames, among them ARP requests for addresses that no endpoint has.'),
          multicast: policy('Frames to multicast groups, other than those by which IPv6 works.'),
          mtu: optional(
            integer({
              description: 'Bytes of an IP packet, at most; absent: what the paths between the nodes leave.',
              minimum: LEAST_MTU,
              maximum: 9000,
            }),
          ),
        },
        { ...SPEC, rules },
      ),
      status: optional(
        object(
          {
            number: optional(
              integer({
                description:
                  'Of the network in the frames between nodes; no other network has it while an endpoint stands.',
                minimum: 1,
                maximum: MAX_L2_NETWORK_NUMBER,
              }),
            ),
            mtu: optional(
              integer({
                description: 'Bytes of an IP packet that fits every path between its nodes.',
                minimum: 0,
                maximum: 9000,
              }),
            ),
            endpoints: optional(
              integer({ description: 'Endpoints of the network.', minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
            ),
            nodes: optional(
              list(nodeName('a node'), {
                description: 'Nodes with endpoints of the network.',
                as: 'set',
                maxItems: MAX_L2_NETWORK_NODES,
              }),
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
export type Network = ObjectOf<typeof networkKind>;
