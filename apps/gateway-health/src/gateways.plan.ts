import {
  type Gateway,
  type GatewayPool,
  type GatewayPoolNode,
  type GatewayPoolPeering,
  GROUP_VERSION,
  labels,
  type Mesh,
  type Site,
  type SiteGatewayPoolAssignment,
  type SiteNodeSlice,
  type SitePeering,
} from '@unbounded/crds';
import { firstAddress, formatAddress } from '@unbounded/ip';
import {
  type Damped,
  type Ineligible,
  isSelected,
  keyRotationOf,
  type NodeFacts,
  poolOf,
  readRecords,
  settleNodes,
  whyIneligible,
} from '@unbounded/membership';
import type { PoolReach } from '@unbounded/topology';

import {
  type ExternalPlan,
  type HalfResolvedName,
  planExternalAddresses,
  type RefusedAddress,
  refusedAddresses,
  type Resolved,
  type UnresolvedName,
} from './external-addresses.plan.ts';
import { type Leaving, leavingGateways } from './leaving-gateways.ts';
import { planPorts } from './ports.plan.ts';
import { planReach } from './reachability.plan.ts';

/** A node with what shows its role. */
export interface GatewayNode {
  readonly facts: NodeFacts;
  /** From the annotation. */
  readonly annotatedPort?: number | undefined;
  readonly isTainted: boolean;
}

export interface GatewayWorld {
  readonly nodes: readonly GatewayNode[];
  readonly sites: readonly Site[];
  readonly pools: readonly GatewayPool[];
  readonly assignments: readonly SiteGatewayPoolAssignment[];
  readonly sitePeerings: readonly SitePeering[];
  readonly poolPeerings: readonly GatewayPoolPeering[];
  /** A relay joins what nothing else joins. */
  readonly meshes: readonly Mesh[];
  readonly poolNodes: readonly GatewayPoolNode[];
  /** With the pools' status they record which node was listed first with a key, an address or a block. */
  readonly slices: readonly SiteNodeSlice[];
  /** What a DNS name in the annotation `external-address` stands for. */
  readonly resolvedOf?: (name: string) => Resolved | undefined;
  /** What counts of {@link resolveNodes}, if that is not all of it. */
  readonly standing?: Damped<ExternalPlan>;
  /** Which of the gateways that leave stay for now; all, if it is not set. */
  readonly staying?: (leaving: readonly Leaving[]) => Leaving[];
}

/** A node that a pool selects and that is not its gateway. */
export interface Outsider {
  readonly node: string;
  readonly reason: Ineligible;
}

/** What the nodes that a pool selects are to it. */
interface PoolMembers {
  readonly pool: GatewayPool;
  readonly gateways: readonly Gateway[];
  readonly outsiders: readonly Outsider[];
  /** Gateways for which no port was left. */
  readonly withoutPort: readonly string[];
  /** DNS names of nodes that the pool selects. */
  readonly unresolved: readonly UnresolvedName[];
  readonly halfResolved: readonly HalfResolvedName[];
  /** Addresses of such names that are not used. */
  readonly refused: readonly RefusedAddress[];
  /** Nodes with such names that change too often. */
  readonly damped: readonly string[];
}

export interface PoolPlan extends PoolMembers, PoolReach {}

/** What a node must show of its role: port and taint. */
export interface RoleChange {
  readonly node: string;
  /** undefined: the annotation goes. */
  readonly port: number | undefined;
  readonly isTainted: boolean;
}

export interface GatewaysPlan {
  readonly pools: readonly PoolPlan[];
  readonly roles: readonly RoleChange[];
  readonly poolNodes: readonly GatewayPoolNode[];
  /** All DNS names of nodes that a pool selects. */
  readonly names: ReadonlySet<string>;
}

const byName = <T extends { readonly name: string }>(a: T, b: T): number =>
  a.name < b.name ? -1 : a.name > b.name ? 1 : 0;

const toGateway = (node: NodeFacts, siteName: string | undefined, port: number | undefined): Gateway => ({
  name: node.name,
  ...(siteName === undefined ? {} : { siteName }),
  internalIPs: node.internalIPs,
  externalIPs: node.externalIPs,
  healthEndpoints: node.podPrefixes.map((prefix) => formatAddress(firstAddress(prefix))),
  wireGuardPublicKey: node.wireGuardPublicKey ?? '',
  ...keyRotationOf(node),
  ...(port === undefined ? {} : { gatewayWireguardPort: port }),
  podCIDRs: node.podCIDRs,
  ...(node.tunnelProtocols === undefined ? {} : { tunnelProtocols: node.tunnelProtocols }),
  ...(node.features === undefined ? {} : { features: node.features }),
  ...(node.l2Locator === undefined ? {} : { l2Locator: node.l2Locator }),
});

const toPoolNode = (node: NodeFacts, pool: GatewayPool, site: string | undefined): GatewayPoolNode => {
  const { name } = node;
  const poolName = pool.metadata.name;
  return {
    apiVersion: GROUP_VERSION,
    kind: 'GatewayPoolNode',
    metadata: {
      name,
      labels: {
        [labels.gatewayPool]: poolName,
        ...(name.length <= 63 ? { [labels.node]: name } : {}),
        ...(site ? { [labels.site]: site } : {}),
      },
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Node', name, uid: node.uid, controller: true, blockOwnerDeletion: false },
        {
          apiVersion: GROUP_VERSION,
          kind: 'GatewayPool',
          name: poolName,
          uid: pool.metadata.uid ?? '',
          controller: false,
          blockOwnerDeletion: false,
        },
      ],
    },
    spec: { nodeName: name, gatewayPool: poolName, ...(site ? { site } : {}) },
  };
};

const outsidersOf = (
  pool: GatewayPool,
  nodes: readonly NodeFacts[],
  membership: ReadonlyMap<string, GatewayPool>,
): Outsider[] =>
  nodes
    .filter((node) => isSelected(pool, node) && membership.get(node.name) !== pool)
    .map((node) => ({ node: node.name, reason: whyIneligible(pool, node) ?? 'InOtherPool' }));

/** Which object of the kind a node keeps although it is no gateway now: one that lost, say, its address for a moment. */
const keptPoolNodes = (
  { poolNodes, pools }: GatewayWorld,
  facts: readonly NodeFacts[],
  members: ReadonlyMap<string, GatewayPool>,
): GatewayPoolNode[] => {
  const nodesByName = new Map(facts.map((node) => [node.name, node]));
  const poolsByName = new Map(pools.map((pool) => [pool.metadata.name, pool]));
  return poolNodes.filter(({ metadata, spec }) => {
    const node = nodesByName.get(metadata.name);
    const pool = poolsByName.get(spec.gatewayPool);
    return node && pool && !members.has(node.name) && isSelected(pool, node);
  });
};

const planRoles = (
  nodes: readonly GatewayNode[],
  pools: readonly GatewayPool[],
  ports: ReadonlyMap<string, number>,
  members: ReadonlyMap<string, GatewayPool>,
): RoleChange[] =>
  nodes.flatMap(({ facts, annotatedPort, isTainted }) => {
    const isGateway = members.has(facts.name);
    const port = ports.get(facts.name);
    // A node that a pool selects keeps a taint it came with: it may lack only its key yet.
    const wantsTaint = isGateway || (isTainted && pools.some((pool) => isSelected(pool, facts)));
    return port === annotatedPort && wantsTaint === isTainted
      ? []
      : [{ node: facts.name, port, isTainted: wantsTaint }];
  });

/** What the nodes state, with the addresses of their DNS names. */
export const resolveNodes = ({
  nodes,
  pools,
  resolvedOf = () => undefined,
}: Pick<GatewayWorld, 'nodes' | 'pools' | 'resolvedOf'>): readonly ExternalPlan[] => {
  const recordOf = readRecords([], pools);
  return nodes.map(({ facts }) => planExternalAddresses(facts, recordOf(facts.name).externalIPs, resolvedOf));
};

/** What the nodes are and may use. */
const settle = (world: GatewayWorld) => {
  const external = world.standing?.standing ?? resolveNodes(world);
  const settled = settleNodes({ ...world, nodes: external.map(({ facts }) => facts) }).toSorted((a, b) =>
    byName(a.facts, b.facts),
  );
  const sites = new Map(settled.map(({ facts, site }) => [facts.name, site?.metadata.name]));
  return {
    facts: settled.map(({ facts }) => facts),
    siteOf: ({ name }: NodeFacts): string | undefined => sites.get(name),
    unresolved: external.flatMap(({ unresolved }) => unresolved),
    halfResolved: external.flatMap(({ halfResolved }) => halfResolved),
    refused: settled.flatMap(refusedAddresses),
  };
};

/** Damped nodes with DNS names, by what stands of them: what they state may change at any moment. */
const dampedNames = ({ standing }: GatewayWorld): string[] =>
  (standing?.standing ?? [])
    .filter(({ facts, isNamed }) => isNamed && standing!.damped.has(facts.name))
    .map(({ facts }) => facts.name)
    .sort();

const namesOf = ({ nodes, pools }: GatewayWorld): ReadonlySet<string> =>
  new Set(
    nodes
      .filter(({ facts }) => facts.externalNames.length > 0 && pools.some((pool) => isSelected(pool, facts)))
      .flatMap(({ facts }) => facts.externalNames),
  );

const portsOf = (
  world: GatewayWorld,
  pools: readonly GatewayPool[],
  members: ReadonlyMap<string, GatewayPool>,
): ReadonlyMap<string, number> => {
  const fromStatus = new Map(
    pools.flatMap(
      ({ status }) =>
        status?.nodes?.map(({ name, gatewayWireguardPort }) => [name, gatewayWireguardPort] as const) ?? [],
    ),
  );
  return planPorts(
    world.nodes
      .filter(({ facts }) => members.has(facts.name))
      .map(({ facts: { name, createdAt, uid }, annotatedPort }) => ({
        node: name,
        age: `${createdAt} ${uid}`,
        fromStatus: fromStatus.get(name),
        fromAnnotation: annotatedPort,
      })),
  );
};

/** By the gateways that this plan lists: those of the pools' status may be of before. */
const withReach = ({ sites, assignments, sitePeerings, poolPeerings, meshes }: GatewayWorld, pools: PoolMembers[]) => {
  const gatewayPools = pools.map(({ pool, gateways }) => ({ ...pool, status: { nodes: [...gateways] } }));
  const reach = planReach({ sites, gatewayPools, assignments, sitePeerings, poolPeerings, meshes });
  return pools.map((plan): PoolPlan => ({ ...plan, ...reach.get(plan.pool.metadata.name)! }));
};

/** Gateways by the pool that takes them, or that they have not left yet. */
const membersOf = (
  world: GatewayWorld,
  pools: readonly GatewayPool[],
  { facts, siteOf }: Pick<ReturnType<typeof settle>, 'facts' | 'siteOf'>,
): ReadonlyMap<string, GatewayPool> => {
  const taken = new Map(
    facts.flatMap((node) => {
      const pool = poolOf(node, pools);
      return pool ? [[node.name, pool] as const] : [];
    }),
  );
  const leaving = leavingGateways({ pools, slices: world.slices }, facts, ({ name }) => taken.has(name), siteOf);
  const staying = world.staying?.(leaving) ?? leaving;
  return new Map([...taken, ...staying.map(({ node, pool }) => [node.name, pool] as const)]);
};

/** Who is a gateway of which pool, by which port it is reached, and what can be reached through it. */
export const planGateways = (world: GatewayWorld): GatewaysPlan => {
  const pools = world.pools.toSorted((a, b) => byName(a.metadata, b.metadata));
  const { facts, siteOf, ...names } = settle(world);
  const members = membersOf(world, pools, { facts, siteOf });
  const ports = portsOf(world, pools, members);
  const gatewayFacts = facts.filter(({ name }) => members.has(name));
  const byNode = new Map(facts.map((node) => [node.name, node]));
  const named = dampedNames(world);
  const filled = pools.map((pool): PoolMembers => {
    const own = gatewayFacts.filter(({ name }) => members.get(name) === pool);
    return {
      pool,
      gateways: own.map((node) => toGateway(node, siteOf(node), ports.get(node.name))),
      outsiders: outsidersOf(pool, facts, members),
      withoutPort: own.map(({ name }) => name).filter((name) => !ports.has(name)),
      unresolved: names.unresolved.filter(({ node }) => isSelected(pool, byNode.get(node)!)),
      halfResolved: names.halfResolved.filter(({ node }) => isSelected(pool, byNode.get(node)!)),
      refused: names.refused.filter(({ node }) => isSelected(pool, byNode.get(node)!)),
      damped: named.filter((name) => isSelected(pool, byNode.get(name)!)),
    };
  });
  return {
    pools: withReach(world, filled),
    roles: planRoles(world.nodes, pools, ports, members),
    poolNodes: [
      ...gatewayFacts.map((node) => toPoolNode(node, members.get(node.name)!, siteOf(node))),
      ...keptPoolNodes(world, facts, members),
    ],
    names: namesOf(world),
  };
};
