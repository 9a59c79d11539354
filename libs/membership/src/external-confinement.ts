import { annotations, type GatewayPool, type Site } from '@unbounded/crds';
import { type Address, AddressSet, containsAddress, tryParsePrefix } from '@unbounded/ip';

import { tryParseAddress } from './external-address.ts';
import { listed } from './listed.ts';
import { annotationField, type NodeFacts } from './node-facts.ts';
import type { NodeProblem } from './node-problem.ts';
import type { PodAddresses } from './pod-addresses.ts';
import type { NodeRecord } from './records.ts';
import { siteBlocks } from './site-blocks.ts';

/** Where an external address lies that cannot be the node's; undefined: it can be. */
type Whose = (address: Address, own: Site | undefined) => string | undefined;

/**
 * Peers send to an external address past the overlay, so they route no block that holds one: with an address of another
 * Site's, or of what a pool routes, a node would take that block from everybody. In the nodeCidrs of its own Site it may have one: nodes can have
 * public addresses.
 */
const whoseOf = (sites: readonly Site[], pools: readonly GatewayPool[], pods: PodAddresses): Whose => {
  const routed = pools.flatMap(({ metadata, spec }) =>
    (spec.routedCidrs ?? []).flatMap((text) => {
      const prefix = tryParsePrefix(text);
      return prefix ? [{ prefix, pool: metadata.name }] : [];
    }),
  );
  const routedBy = (address: Address): string | undefined => {
    const found = routed.find(({ prefix }) => containsAddress(prefix, address));
    return found && `routedCidrs of GatewayPool ${found.pool}`;
  };
  const nodes = AddressSet.of(sites.flatMap((site) => siteBlocks(site).nodePrefixes));
  return (address, own) => {
    if (own && siteBlocks(own).nodes.has(address)) {
      const site = pods.siteOf(own, address);
      return site && `cidrBlocks of Site ${site.metadata.name}`;
    }
    if (pods.has(address)) {
      const site = sites.find((one) => siteBlocks(one).pods.has(address))!;
      return `cidrBlocks of Site ${site.metadata.name}`;
    }
    if (!nodes.has(address)) return routedBy(address);
    const site = sites.find((one) => siteBlocks(one).nodes.has(address))!;
    return `nodeCidrs of Site ${site.metadata.name}`;
  };
};

const problemOf = ({ isExternalAnnotated }: NodeFacts, refused: readonly string[]): NodeProblem => {
  const [field, remedy] = isExternalAnnotated
    ? [annotationField(annotations.externalAddress), 'correct the DNS zone, or write the address itself there']
    : ['status.addresses', `correct it, or write the address into the annotation ${annotations.externalAddress}`];
  const message = `external address ${listed(refused)} belongs to others and is not used: ${remedy} if it is the node's all the same`;
  return { reason: 'ExternalAddressInSite', field, message };
};

/**
 * External addresses that the kubelet states or a DNS server answers count outside of all other Sites and routed blocks. An administrator's
 * count anywhere, and so do those that were listed for the node before: the Site's block came later.
 */
export const createExternalConfinement = (
  sites: readonly Site[],
  pools: readonly GatewayPool[],
  pods: PodAddresses,
) => {
  const whose = whoseOf(sites, pools, pods);
  return (
    facts: NodeFacts,
    site: Site | undefined,
    record: NodeRecord,
  ): { facts: NodeFacts; problems: readonly NodeProblem[] } => {
    const refused = new Map<string, string>();
    for (const text of facts.externalIPs) {
      if (facts.literalExternalIPs.includes(text) || record.externalIPs.includes(text)) continue;
      const place = whose(tryParseAddress(text)!, site);
      if (place !== undefined) refused.set(text, `${text} (${place})`);
    }
    if (refused.size === 0) return { facts, problems: [] };
    const externalIPs = facts.externalIPs.filter((text) => !refused.has(text));
    return { facts: { ...facts, externalIPs }, problems: [problemOf(facts, [...refused.values()])] };
  };
};
