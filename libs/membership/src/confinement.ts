import { annotations, type Site } from '@unbounded/crds';
import { type Address, formatAddress, formatPrefix, type Prefix } from '@unbounded/ip';

import { listed } from './listed.ts';
import { type NodeFacts } from './node-facts.ts';
import { type NodeProblem } from './node-problem.ts';
import { type NodeRecord } from './records.ts';
import { siteBlocks } from './site-blocks.ts';

/** A node's addresses and blocks that lie where its Site says; the rest is told. */
export interface Confined {
  readonly facts: NodeFacts;
  readonly problems: readonly NodeProblem[];
}

/** Without the internal addresses that are not kept. */
export const withAddresses = (facts: NodeFacts, keep: (text: string, address: Address) => boolean): NodeFacts => {
  const internalAddresses = facts.internalAddresses.filter((address) => keep(formatAddress(address), address));
  return { ...facts, internalAddresses, internalIPs: internalAddresses.map(formatAddress) };
};

/** Without what is not kept. */
export const withBlocks = (facts: NodeFacts, keep: (prefix: Prefix) => boolean): NodeFacts => {
  const podPrefixes = facts.podPrefixes.filter(keep);
  return { ...facts, podPrefixes, podCIDRs: podPrefixes.map(formatPrefix) };
};

/** A node of no Site (a gateway can be one) keeps what was listed for it before: no Site says otherwise. */
const confineAddresses = (facts: NodeFacts, site: Site | undefined, record: NodeRecord): Confined => {
  const isInside = (text: string, address: Address): boolean =>
    site ? siteBlocks(site).nodes.has(address) : record.addresses.has(text);
  const outside = withAddresses(facts, (text, address) => !isInside(text, address)).internalIPs;
  if (outside.length === 0) return { facts, problems: [] };
  const where = site ? `spec.nodeCidrs of Site ${site.metadata.name}` : 'spec.nodeCidrs of any Site';
  const problem: NodeProblem = {
    reason: 'AddressOutsideSite',
    field: 'status.addresses',
    message: `InternalIP ${listed(outside)} is not in ${where} and is not used: add its block there if the address is the node's (for an external address use type ExternalIP or the annotation ${annotations.externalAddress})`,
  };
  return { facts: withAddresses(facts, isInside), problems: [problem] };
};

const blocksProblem = (outside: readonly Prefix[], site: Site | undefined, what: string): NodeProblem => {
  const where = site ? `the cidrBlocks of Site ${site.metadata.name}` : 'the cidrBlocks of any Site';
  const message = `${listed(outside.map(formatPrefix))} is not in ${where} and ${what}: delete the Node object and register the node anew, so that it gets pod CIDRs of its Site, or add the block to the Site`;
  return { reason: 'PodCIDRsOutsideSite', field: 'spec.podCIDRs', message };
};

/**
 * Pod CIDRs count inside the Site's blocks. One outside that was listed for this node before stays, unless another Site has
 * it: the pool was changed after the node got its block, or another program assigns the blocks.
 */
const confineBlocks = (
  facts: NodeFacts,
  site: Site | undefined,
  sites: readonly Site[],
  record: NodeRecord,
): Confined => {
  const isInside = (prefix: Prefix): boolean => site !== undefined && siteBlocks(site).pods.covers(prefix);
  const outside = facts.podPrefixes.filter((prefix) => !isInside(prefix));
  if (outside.length === 0) return { facts, problems: [] };
  const stays = (prefix: Prefix): boolean =>
    record.podCIDRs.has(formatPrefix(prefix)) &&
    sites.every((other) => other === site || !siteBlocks(other).pods.overlaps(prefix));
  const kept = outside.filter(stays);
  const left = outside.filter((prefix) => !stays(prefix));
  return {
    facts: withBlocks(facts, (prefix) => !left.includes(prefix)),
    problems: [
      ...(left.length === 0 ? [] : [blocksProblem(left, site, 'is not routed')]),
      ...(kept.length === 0 ? [] : [blocksProblem(kept, site, 'is routed only because it was before')]),
    ],
  };
};

export const confine = (
  facts: NodeFacts,
  site: Site | undefined,
  sites: readonly Site[],
  record: NodeRecord,
): Confined => {
  const addresses = confineAddresses(facts, site, record);
  const blocks = confineBlocks(addresses.facts, site, sites, record);
  return { facts: blocks.facts, problems: [...addresses.problems, ...blocks.problems] };
};
