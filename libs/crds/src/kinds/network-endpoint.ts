import { DNS_SUBDOMAIN_PATTERN, nodeName, objectName, SPEC } from '../fields.ts';
import { defineKind, type ObjectOf } from '../kind.ts';
import { canonicalAddress, immutableSpec, macAddress, networkName } from '../l2-fields.ts';
import { MAX_L2_ENDPOINT_ADDRESSES } from '../names.ts';
import { boolean, list, object, optional, string } from '../schema.ts';

export const networkEndpointKind = defineKind({
  kind: 'NetworkEndpoint',
  plural: 'networkendpoints',
  singular: 'networkendpoint',
  shortNames: ['nep'],
  description:
    'An interface of a pod in a Network. Written by the agent of its node, which keeps a finalizer on it until nothing of it is left there; owned by the Pod. Of the feature l2-networks.',
  scope: 'Namespaced',
  hasStatus: false,
  selectableFields: ['.spec.node'],
  columns: [
    { name: 'Network', type: 'string', jsonPath: '.spec.network' },
    { name: 'Pod', type: 'string', jsonPath: '.spec.pod' },
    { name: 'Node', type: 'string', jsonPath: '.spec.node' },
    { name: 'MAC', type: 'string', jsonPath: '.spec.mac' },
    { name: 'Addresses', type: 'string', jsonPath: '.spec.addresses' },
    { name: 'Segment', type: 'string', jsonPath: '.spec.segment', priority: 1 },
  ],
  body: object({
    spec: object(
      {
        network: networkName,
        node: nodeName('The node that the pod runs on.'),
        nodeUID: optional(
          string({
            description:
              'metadata.uid of its Node: one that is made anew under the name does not keep the endpoint. Absent: the times of creation decide.',
            maxLength: 64,
          }),
        ),
        pod: string({
          description: 'Name of the Pod, in the same namespace.',
          pattern: DNS_SUBDOMAIN_PATTERN,
          minLength: 1,
          maxLength: 253,
        }),
        interface: string({
          description: 'Name of the interface in the pod.',
          pattern: '^[^/:\\s]{1,15}$',
          maxLength: 15,
        }),
        mac: macAddress('The MAC address of the interface.'),
        addresses: list(canonicalAddress('192.0.2.1 or 2001:db8::1'), {
          description: 'Addresses of the interface in the prefixes of the network.',
          as: 'set',
          maxItems: MAX_L2_ENDPOINT_ADDRESSES,
        }),
        segment: optional(objectName('The segment of the network; absent: that of all endpoints without one.')),
        isTrusted: optional(boolean({ description: 'It may send what routers and DHCP servers send; absent: false.' })),
      },
      { ...SPEC, rules: [immutableSpec] },
    ),
  }),
});
export type NetworkEndpoint = ObjectOf<typeof networkEndpointKind>;
