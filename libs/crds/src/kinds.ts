import { type KindDefinition } from './kind.ts';
import { gatewayPoolKind, gatewayPoolNodeKind } from './kinds/gateway-pool.ts';
import { meshKind } from './kinds/mesh.ts';
import { gatewayPoolPeeringKind, siteGatewayPoolAssignmentKind, sitePeeringKind } from './kinds/peering.ts';
import { siteKind, siteNodeSliceKind } from './kinds/site.ts';

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
];
