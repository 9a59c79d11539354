import { addressText } from '../egress-fields.ts';
import { addressTexts, LONGEST_CIDR, nodeName, SPEC, STATUS } from '../fields.ts';
import { defineKind, type ObjectOf } from '../kind.ts';
import {
  MAX_EGRESS_POD_ROUTES,
  MAX_EGRESS_SLICE_ADDRESSES,
  MAX_EGRESS_SLICE_PODS,
  MAX_EGRESS_SLICE_ROUTES,
} from '../names.ts';
import { boolean, type CelRule, type Infer, integer, list, object, oneOf, optional, string } from '../schema.ts';

const count = (description: string) => integer({ description, minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const prefix = string({ description: '192.0.2.0/24 or 2001:db8::/32', maxLength: LONGEST_CIDR });
const uid = (description: string) => string({ description, minLength: 1, maxLength: 64 });
const device = (description: string) => string({ description, maxLength: 15 });

const egress = object({
  address: addressText('The address that packets leave with.'),
  node: optional(nodeName('The node that owns it; absent: none, and whenUnavailable counts.')),
});

const route = object({
  rule: string({ description: 'KIND/NAMESPACE/NAME/INDEX of the rule, for people.', maxLength: 600 }),
  destinations: list(prefix, { description: 'Destinations, less those of the cluster.', as: 'atomic', maxItems: 2 }),
  except: optional(
    list(prefix, { description: 'Destinations left to the pod’s next route.', as: 'atomic', maxItems: 64 }),
  ),
  egress: optional(
    list(egress, {
      description: 'One address of a family; where a family of the destinations has none, whenUnavailable is Drop.',
      as: 'atomic',
      maxItems: 2,
    }),
  ),
  whenUnavailable: oneOf(['Drop', 'Node'], {
    description: 'While no node owns the address: drop, or leave with the address of the pod’s node.',
  }),
});
/** Where packets go and which address they leave with. */
export type EgressRoute = Infer<typeof route>;

const routeNumbers = list(
  integer({ description: 'place in routes', minimum: 0, maximum: MAX_EGRESS_SLICE_ROUTES - 1 }),
  {
    description: 'Places in routes, from 0: the first one whose destinations hold that of a packet counts.',
    as: 'atomic',
    maxItems: MAX_EGRESS_POD_ROUTES,
  },
);

const steeredPod = object({
  uid: uid('metadata.uid of the Pod.'),
  namespace: string({ description: 'Its namespace.', maxLength: 63 }),
  name: string({ description: 'Its name.', maxLength: 253 }),
  addresses: addressTexts('Its addresses; empty until it has some.'),
  routes: routeNumbers,
});

const sourcePod = object({
  uid: uid('metadata.uid of the Pod.'),
  node: nodeName('The node that it runs on.'),
  addresses: addressTexts('Its addresses.'),
  routes: routeNumbers,
});

const ownedAddress = object({
  address: addressText('The address.'),
  epoch: count('Number of the grant: an owner before had a lower one.'),
  release: optional(boolean({ description: 'true: give it up, and confirm that in status.released. Absent: own it.' })),
  interface: optional(device('Device to announce it on; absent: that with the subnet of the address.')),
  nextHops: optional(addressTexts('Routers that packets leave by; absent: what the routes say.')),
  announce: oneOf(['L2', 'None'], { description: 'Whether to answer ARP and NDP for it.' }),
});
export type OwnedAddress = Infer<typeof ownedAddress>;

const grant = object({ address: addressText('The address.'), epoch: count('The epoch of its grant.') });
const grants = (description: string) =>
  optional(list(grant, { description, as: 'atomic', maxItems: MAX_EGRESS_SLICE_ADDRESSES }));

const podRules: readonly CelRule[] = [
  {
    rule: `(has(self.pods) ? size(self.pods) : 0) + (has(self.sources) ? size(self.sources) : 0) <= ${MAX_EGRESS_SLICE_PODS}`,
    message: `pods and sources together must have at most ${MAX_EGRESS_SLICE_PODS} entries`,
  },
];

const spec = object(
  {
    nodeName: nodeName('The Node.'),
    nodeUID: uid('Its metadata.uid: a Node that is made anew owns nothing of its predecessor.'),
    index: integer({ description: 'Number of the slice among those of the node, from 0.', minimum: 0, maximum: 9999 }),
    routes: optional(
      list(route, {
        description: 'Routes that pods and sources of this slice refer to.',
        as: 'atomic',
        maxItems: MAX_EGRESS_SLICE_ROUTES,
      }),
    ),
    pods: optional(
      list(steeredPod, {
        description: 'Pods of the node that leave with an egress address.',
        as: 'atomic',
        maxItems: MAX_EGRESS_SLICE_PODS,
      }),
    ),
    owned: optional(
      list(ownedAddress, {
        description: 'Addresses that the node owns, or is to release.',
        as: 'atomic',
        maxItems: MAX_EGRESS_SLICE_ADDRESSES,
      }),
    ),
    sources: optional(
      list(sourcePod, {
        description: 'Pods of any node that leave with an address that the node owns; no others may use it.',
        as: 'atomic',
        maxItems: MAX_EGRESS_SLICE_PODS,
      }),
    ),
  },
  { ...SPEC, rules: podRules },
);
export type EgressNodeSliceSpec = Infer<typeof spec>;

export const egressNodeSliceKind = defineKind({
  kind: 'EgressNodeSlice',
  plural: 'egressnodeslices',
  singular: 'egressnodeslice',
  shortNames: ['ens'],
  description:
    'Up to 500 pods that one node steers to an egress address or translates to one. Written by static-egress; the agent of the node reads it and confirms it.',
  hasStatus: true,
  selectableFields: ['.spec.nodeName'],
  columns: [
    { name: 'Node', type: 'string', jsonPath: '.spec.nodeName' },
    { name: 'Index', type: 'integer', jsonPath: '.spec.index' },
    { name: 'Addresses', type: 'string', jsonPath: '.spec.owned[*].address' },
    { name: 'Generation', type: 'integer', jsonPath: '.metadata.generation', priority: 1 },
    { name: 'Confirmed', type: 'integer', jsonPath: '.status.observedGeneration' },
  ],
  body: object({
    spec,
    status: optional(
      object(
        {
          observedGeneration: optional(count('The metadata.generation that the kernel of the node enforces.')),
          heartbeat: optional(
            count(
              'In slice 0: a number that the agent changes every 5 s. While it does, the agent counts as alive; no clock of the node matters.',
            ),
          ),
          held: grants('Addresses of this slice that the node holds.'),
          released: grants(
            'Addresses that it was to release by this slice, with these epochs, and does not answer for any more.',
          ),
          subnets: optional(
            list(object({ interface: device('The device.'), cidr: prefix }), {
              description:
                'Networks that the node is attached to, in slice 0: it can answer there for further addresses.',
              as: 'atomic',
              maxItems: 64,
            }),
          ),
        },
        STATUS,
      ),
    ),
  }),
});
export type EgressNodeSlice = ObjectOf<typeof egressNodeSliceKind>;
