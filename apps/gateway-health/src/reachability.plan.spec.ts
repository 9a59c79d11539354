import { annotations, type Gateway, type SiteNode } from '@unbounded/crds';
import { type Family, formatPrefix, type Prefix } from '@unbounded/ip';
import { nodeFacts } from '@unbounded/membership';
import {
  findMember,
  type NodePlan,
  parseWorld,
  planNode,
  type SiteModel,
  type TopologyObjects,
} from '@unbounded/topology';
import { anyCluster, anyConnectedCluster } from '@unbounded/topology/random-cluster';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { type GatewayNode, planGateways, type PoolPlan } from './gateways.plan.ts';

/** The status that this program writes, against the plans that agents make of it. */

const addresses = (type: string, texts: readonly string[] = []) => texts.map((address) => ({ type, address }));

const nodeOf = (listed: SiteNode | Gateway, pool?: string): GatewayNode => ({
  facts: nodeFacts({
    metadata: {
      name: listed.name,
      uid: `uid-${listed.name}`,
      ...(pool === undefined ? {} : { labels: { pool } }),
      annotations: {
        [annotations.wireGuardPublicKey]: listed.wireGuardPublicKey ?? '',
        [annotations.tunnelProtocols]: (listed.tunnelProtocols ?? []).join(),
        [annotations.features]: 'features' in listed ? listed.features.join() : '',
      },
    },
    spec: { podCIDRs: listed.podCIDRs ?? [] },
    status: {
      addresses: [
        ...addresses('InternalIP', listed.internalIPs),
        ...addresses('ExternalIP', 'externalIPs' in listed ? listed.externalIPs : []),
      ],
    },
  }),
  isTainted: false,
});

/** What this program makes of the Nodes of a cluster whose pools list nothing yet, and what the agents then read. */
const reconciled = (cluster: TopologyObjects): { pools: readonly PoolPlan[]; objects: TopologyObjects } => {
  const workers = cluster.slices.flatMap(({ nodes = [] }) => nodes.map((node) => nodeOf(node)));
  const gateways = cluster.gatewayPools.flatMap(({ metadata, status }) =>
    (status?.nodes ?? []).map((node) => nodeOf(node, metadata.name)),
  );
  const { pools } = planGateways({
    ...cluster,
    nodes: [...workers, ...gateways],
    pools: cluster.gatewayPools.map((pool) => ({ ...pool, status: { nodes: [] } })),
    poolNodes: [],
  });
  const gatewayPools = pools.map(({ pool, gateways: nodes }) => ({ ...pool, status: { nodes: [...nodes] } }));
  return { pools, objects: { ...cluster, gatewayPools } };
};

/** Families of a Site's pods in which a plan has gateways to send to: in a group of the Site, or as neighbours of a route to its pods. */
const familiesTo = ({ groups, blocks }: NodePlan, { name, podCidrs }: SiteModel): Family[] => {
  const isLed = (block: Prefix): boolean =>
    groups.some((group) => group.site === name && group.family === block.family && group.members.length > 0) ||
    blocks.some(({ prefix, to }) => prefix === formatPrefix(block) && typeof to === 'object' && 'gateways' in to);
  return podCidrs.filter(isLed).map(({ family }) => family);
};

interface Found {
  /** By name of the pool: Sites that the plans of its gateways serve or lead to. */
  readonly reached: Map<string, string[]>;
  /** How often plans lead to a Site: by IPv4, IPv6, both. */
  readonly kinds: string[];
}

const inPlans = (objects: TopologyObjects): Found => {
  const world = parseWorld(objects);
  const kinds: string[] = [];
  const reached = new Map(
    [...world.pools.values()].map(({ name: pool, gateways }) => {
      const plans = gateways.map(({ name }) =>
        planNode(world, { member: findMember(world, name)!, underlayMtuBytes: 1500 }),
      );
      const sites = [...world.sites.values()].filter((site) => {
        if (plans.some(({ servedSites }) => servedSites.includes(site.name))) return true;
        const families = new Set(plans.flatMap((plan) => familiesTo(plan, site)));
        if (families.size > 0) kinds.push([4, 6].filter((family) => families.has(family as Family)).join(' and '));
        return families.size > 0;
      });
      return [pool, sites.map(({ name }) => name).sort()];
    }),
  );
  return { reached, kinds };
};

const statusOf = (pools: readonly PoolPlan[]) =>
  new Map(pools.map(({ pool, reachableSites }) => [pool.metadata.name, reachableSites]));

/**
 * A pool with gateways lists a Site if and only if the plan of at least one of them has the Site in `servedSites`, or a group of
 * the Site in a family of its pods with members, or a route to a block of its pods by plain neighbours. This holds where every
 * link can be carried by the protocol that it is to have: distances do not ask for protocols.
 */
test('a pool lists as reachable the Sites that plans of its gateways serve, or to whose pods they send on, in IPv4 or IPv6', () => {
  const kinds: string[] = [];
  fc.assert(
    fc.property(anyConnectedCluster, (cluster) => {
      const { pools, objects } = reconciled(cluster);
      const found = inPlans(objects);
      kinds.push(...found.kinds);
      expect(statusOf(pools)).toEqual(found.reached);
    }),
    { numRuns: 500 },
  );
  expect(new Set(kinds)).toEqual(new Set(['4', '6', '4 and 6']));
}, 120_000);

test('no Site that a plan serves or leads to is missing, whatever protocols are asked for', () => {
  fc.assert(
    fc.property(anyCluster, (cluster) => {
      const { pools, objects } = reconciled(cluster);
      const { reached } = inPlans(objects);
      for (const [pool, listed] of statusOf(pools)) expect(listed).toEqual(expect.arrayContaining(reached.get(pool)!));
    }),
    { numRuns: 200 },
  );
}, 120_000);
