import type { ObjectsOf, topologyKinds, TunnelProtocol } from '@unbounded/crds';
import type { Prefix } from '@unbounded/ip';
import type { Confinement } from './confinement.ts';
import type { HealthSettings } from './health-settings.ts';
import type { Problem } from './problem.ts';
import type { RelayModel } from './relay-model.ts';

/** The objects of the cluster that decide about the network, as the API server holds them. */
export type TopologyObjects = ObjectsOf<typeof topologyKinds>;

/** What an object says about the links that it governs. */
export interface LinkScope {
  readonly kind: 'Site' | 'SitePeering' | 'SiteGatewayPoolAssignment' | 'GatewayPool' | 'GatewayPoolPeering';
  readonly name: string;
  /** Undefined: nothing, or Auto. */
  readonly protocol: TunnelProtocol | undefined;
  readonly mtuBytes: number | undefined;
  /** Undefined: the object does not say how its links are probed. */
  readonly health: HealthSettings | undefined;
}

export interface SiteModel {
  readonly name: string;
  readonly nodeCidrs: readonly Prefix[];
  /** Blocks from which the site's pods have their addresses: what is routed to the site. */
  readonly podCidrs: readonly Prefix[];
  /** IPv6 /52 with the locators of the site's nodes. Undefined: none given, or one that cannot be used. */
  readonly locatorBlock?: Prefix | undefined;
  readonly nonMasqueradeCidrs: readonly Prefix[];
  /** Sources on the networks of the site's nodes whose packets these forward into the overlay, though they are no nodes. */
  readonly allowedSourceCidrs: readonly Prefix[];
  /** Destinations outside of the cluster to which pods may send tunnel packets. */
  readonly podTunnelCidrs: readonly Prefix[];
  readonly manageCni: boolean;
  /** Nodes get blocks from `podCidrs`; false: they have them from somewhere else. */
  readonly assignsBlocks: boolean;
  /** Prefix lengths of the blocks that nodes get. */
  readonly blockLengths: ReadonlySet<number>;
  readonly scope: LinkScope;
}

/** A node as its peers see it. */
export interface Member {
  readonly name: string;
  readonly site: string;
  /** Undefined: not published yet, malformed, or another node's. */
  readonly publicKey: string | undefined;
  /** How many times the key was exchanged. */
  readonly keyGeneration: number;
  /** The key of the next generation, while both are in use. */
  readonly nextPublicKey: string | undefined;
  /** Those inside the nodeCidrs of its Site. */
  readonly internalIps: readonly string[];
  /** Those of them that no other member claims: where the node itself may be reached through the overlay. */
  readonly nodeAddresses: readonly string[];
  readonly externalIps: readonly string[];
  readonly podCidrs: readonly Prefix[];
  /** IPv6 /64 inside the locatorBlock of its Site: where frames of stretched L2 go. Undefined: none given, or another node's. */
  readonly locator?: Prefix | undefined;
  /** Undefined: the node has not said what it can do. */
  readonly protocols: readonly string[] | undefined;
  /** What its agent supports of what peers rely on; of gateways only. */
  readonly features: readonly string[];
  /** Set for gateways. */
  readonly pool: string | undefined;
  /** UDP port on which this gateway's dedicated interfaces meet; undefined: none given yet, or another gateway's. */
  readonly gatewayPort: number | undefined;
}

export interface PoolModel {
  readonly name: string;
  readonly external: boolean;
  readonly routedCidrs: readonly Prefix[];
  readonly gateways: readonly Member[];
  readonly scope: LinkScope;
}

/** A set of names that an enabled object joins. */
export interface Join {
  readonly scope: LinkScope;
  readonly members: ReadonlySet<string>;
}

export interface World {
  readonly sites: ReadonlyMap<string, SiteModel>;
  /** Where what nodes state may lie. */
  readonly confinement: Confinement;
  readonly pools: ReadonlyMap<string, PoolModel>;
  /** Nodes of the slices: all but gateways. */
  readonly workers: readonly Member[];
  readonly sitePeerings: readonly (Join & { readonly mesh: boolean })[];
  readonly assignments: readonly (Join & { readonly pools: ReadonlySet<string> })[];
  readonly poolPeerings: readonly Join[];
  /** Undefined: there is none, or it is not to be used. */
  readonly relay: RelayModel | undefined;
  readonly problems: readonly Problem[];
}
