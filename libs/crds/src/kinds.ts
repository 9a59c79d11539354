import type { KindDefinition, ObjectOf } from './kind.ts';
import { egressIpPoolKind } from './kinds/egress-ip-pool.ts';
import { egressNodeSliceKind } from './kinds/egress-node-slice.ts';
import { gatewayPoolKind, gatewayPoolNodeKind } from './kinds/gateway-pool.ts';
import { fdbEntryKind, neighborKind } from './kinds/l2-entries.ts';
import { meshKind } from './kinds/mesh.ts';
import { networkEndpointKind } from './kinds/network-endpoint.ts';
import { networkKind } from './kinds/network.ts';
import { gatewayPoolPeeringKind, siteGatewayPoolAssignmentKind, sitePeeringKind } from './kinds/peering.ts';
import { siteKind, siteNodeSliceKind } from './kinds/site.ts';
import { clusterStaticEgressIpKind, staticEgressIpKind } from './kinds/static-egress-ip.ts';
import { tailnetDeviceKind } from './kinds/tailnet-device.ts';

/** The kinds of static egress. */
export const egressKinds: readonly KindDefinition[] = [
  egressIpPoolKind,
  staticEgressIpKind,
  clusterStaticEgressIpKind,
  egressNodeSliceKind,
];

/** The kinds of stretched L2: of the feature `l2-networks`, which is off unless somebody turns it on. */
const l2Kinds: readonly KindDefinition[] = [networkKind, networkEndpointKind, fdbEntryKind, neighborKind];

/** The kinds of the feature `tailnet`, which is off unless somebody turns it on. */
const tailnetKinds: readonly KindDefinition[] = [tailnetDeviceKind];

/** Every kind of the API group, in the order in which they are installed. */
export const kinds: readonly KindDefinition[] = [
  siteKind,
  siteNodeSliceKind,
  gatewayPoolKind,
  gatewayPoolNodeKind,
  sitePeeringKind,
  siteGatewayPoolAssignmentKind,
  gatewayPoolPeeringKind,
  meshKind,
  ...egressKinds,
  ...l2Kinds,
  ...tailnetKinds,
];

/** Kinds under the names of the lists in which a program holds their objects. */
export type KindTable = Readonly<Record<string, KindDefinition>>;

export type ObjectsOf<T extends KindTable> = { readonly [Name in keyof T]: readonly ObjectOf<T[Name]>[] };

/** The kinds that decide about the network between nodes. */
export const topologyKinds = {
  sites: siteKind,
  slices: siteNodeSliceKind,
  gatewayPools: gatewayPoolKind,
  sitePeerings: sitePeeringKind,
  assignments: siteGatewayPoolAssignmentKind,
  poolPeerings: gatewayPoolPeeringKind,
  meshes: meshKind,
} as const;
