import { DNS_LABEL_PATTERN, DNS_SUBDOMAIN_PATTERN, nodeName, objectName, SPEC, STATUS } from '../fields.ts';
import { defineKind, type ObjectOf } from '../kind.ts';
import { canonicalAddress, entrySource, immutableSpec, macAddress, networkName, observedText } from '../l2-fields.ts';
import { type CelRule, integer, object, optional, string } from '../schema.ts';

/** The forwarding state of networks: every node projects the entries of those that it hosts into its maps. */

/** NAMESPACE/NAME. */
const endpoint = string({
  description: 'NAMESPACE/NAME of the NetworkEndpoint.',
  pattern: `${DNS_LABEL_PATTERN.slice(0, -1)}/${DNS_SUBDOMAIN_PATTERN.slice(1)}`,
  minLength: 3,
  maxLength: 317,
});
const managingNode = nodeName('The node with the endpoint, which writes the entry.');
const lastObserved = optional(observedText('When traffic last showed it; of learned entries only.'));
const sequence = optional(
  integer({
    description: 'Moves between nodes so far (RFC 7432 7.7); absent: 0.',
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
  }),
);

/** The name follows from the key: two entries of one key are one object, whoever writes them. */
const nameOfFdbEntry: CelRule = {
  rule: `self.metadata.name == self.spec.network + '.' + self.spec.mac.replace(':', '-')`,
  message: 'metadata.name must be NETWORK.MAC with dashes, like lan.02-00-5e-10-00-01',
  messageExpression: `'metadata.name must be "' + self.spec.network + '.' + self.spec.mac.replace(':', '-') + '", which follows from spec'`,
};
/** An x for each colon: a name neither begins nor ends with what stands for one. */
const nameOfNeighbor: CelRule = {
  rule: `self.metadata.name == self.spec.network + '.ip.' + self.spec.ip.replace(':', 'x')`,
  message: 'metadata.name must be NETWORK.ip.ADDRESS with an x for each colon, like lan.ip.2001xdb8xx1',
  messageExpression: `'metadata.name must be "' + self.spec.network + '.ip.' + self.spec.ip.replace(':', 'x') + '", which follows from spec'`,
};

export const fdbEntryKind = defineKind({
  kind: 'FDBEntry',
  plural: 'fdbentries',
  singular: 'fdbentry',
  shortNames: ['fdb'],
  description:
    'Where frames for a MAC address of a Network go. Written by the agent of the node that has the endpoint. Of the feature l2-networks.',
  hasStatus: true,
  columns: [
    { name: 'Network', type: 'string', jsonPath: '.spec.network' },
    { name: 'MAC', type: 'string', jsonPath: '.spec.mac' },
    { name: 'Node', type: 'string', jsonPath: '.status.managingNode' },
    { name: 'Endpoint', type: 'string', jsonPath: '.status.endpoint' },
    { name: 'Source', type: 'string', jsonPath: '.spec.source' },
  ],
  body: object(
    {
      spec: object(
        { network: networkName, mac: macAddress('The MAC address.'), source: entrySource },
        { ...SPEC, rules: [immutableSpec] },
      ),
      status: optional(
        object(
          {
            endpoint,
            managingNode,
            segment: optional(objectName('The segment of the endpoint.')),
            sequence,
            lastObserved,
          },
          STATUS,
        ),
      ),
    },
    { rules: [nameOfFdbEntry] },
  ),
});
export type FDBEntry = ObjectOf<typeof fdbEntryKind>;

export const neighborKind = defineKind({
  kind: 'Neighbor',
  plural: 'neighbors',
  singular: 'neighbor',
  shortNames: ['nbr'],
  description:
    'Which MAC address an IP address of a Network has: ARP and NDP are answered by it. Creating it claims the address. Written by the agent of the node that has the endpoint. Of the feature l2-networks.',
  hasStatus: true,
  columns: [
    { name: 'Network', type: 'string', jsonPath: '.spec.network' },
    { name: 'IP', type: 'string', jsonPath: '.spec.ip' },
    { name: 'MAC', type: 'string', jsonPath: '.status.mac' },
    { name: 'Node', type: 'string', jsonPath: '.status.managingNode' },
    { name: 'Endpoint', type: 'string', jsonPath: '.status.endpoint' },
    { name: 'Source', type: 'string', jsonPath: '.spec.source' },
  ],
  body: object(
    {
      spec: object(
        {
          network: networkName,
          ip: canonicalAddress('The address, inside of the prefixes of the network.'),
          source: entrySource,
        },
        { ...SPEC, rules: [immutableSpec] },
      ),
      status: optional(
        object({ endpoint, managingNode, mac: macAddress('The MAC address.'), sequence, lastObserved }, STATUS),
      ),
    },
    { rules: [nameOfNeighbor] },
  ),
});
export type Neighbor = ObjectOf<typeof neighborKind>;
