import { annotations, type GatewayPool, type Site } from '@unbounded/crds';
import { type Address, formatAddress, formatPrefix, type Prefix } from '@unbounded/ip';

import { createExternalConfinement } from './external-confinement.ts';
import { listed } from './listed.ts';
import type { NodeFacts } from './node-facts.ts';
import type { NodeProblem } from './node-problem.ts';
import { createPodAddresses, type PodAddresses } from './pod-addresses.ts';
import type { NodeRecord } from './records.ts';
import { siteBlocks } from './site-blocks.ts';

/** A node's addresses and blocks that lie where its Site says; the rest is told. */
interface Confined {
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

/** Why an InternalIP is not used, and which ones are not for that reason. */
const addressProblems = (
  outside: readonly string[],
  ofPods: readonly string[],
  site: Site | undefined,
): readonly NodeProblem[] => {
  const where = site ? `spec.nodeCidrs of Site ${site.metadata.name}` : 'spec.nodeCidrs of any Site';
  const field = 'status.addresses';
  return [
    ...(outside.length === 0
      ? []
      : [
          {
            reason: 'AddressOutsideSite',
            field,
            message: `InternalIP ${listed(outside)} is not in ${where} and is not used: add its block there if the address is the node's (for an external address use type ExternalIP or the annotation ${annotations.externalAddress})`,
          } as const,
        ]),
    ...(ofPods.length === 0
      ? []
      : [
          {
            reason: 'AddressOfPods',
            field,
            message: `InternalIP ${listed(ofPods)}, whose pods have these addresses, and is not used: correct the kubelet's --node-ip, or give the pods a block without addresses of nodes`,
          } as const,
        ]),
  ];
};

/** A node of no Site (a gateway can be one) keeps what was listed for it before: no Site says otherwise. */
const confineAddresses = (
  facts: NodeFacts,
  site: Site | undefined,
  pods: PodAddresses,
  record: NodeRecord,
): Confined => {
  const isListed = (text: string): boolean => record.internalIPs.has(text);
  const isInside = (text: string, address: Address): boolean =>
    site ? siteBlocks(site).nodes.has(address) : isListed(text);
  const inside = withAddresses(facts, isInside);
  const outside = facts.internalIPs.filter((text) => !inside.internalIPs.includes(text));
  const ofPods = new Map<string, string>();
  for (const [index, text] of inside.internalIPs.entries()) {
    const other = site && !isListed(text) ? pods.siteOf(site, inside.internalAddresses[index]!) : undefined;
    if (other) ofPods.set(text, `${text} is in cidrBlocks of Site ${other.metadata.name}`);
  }
  if (outside.length + ofPods.size === 0) return { facts, problems: [] };
  return {
    facts: withAddresses(inside, (text) => !ofPods.has(text)),
    problems: addressProblems(outside, [...ofPods.values()], site),
  };
};

const blocksProblem = (outside: readonly Prefix[], site: Site | undefined, what: string): NodeProblem => {
  const where = site ? `the cidrBlocks of Site ${site.metadata.name}` : 'the cidrBlocks of any Site';
  const message = `${listed(outside.map(formatPrefix))} is not in ${where} and ${what}: delete the Node object and register the node anew, so that it gets pod CIDRs of its Site, or add the block to the Site`;
  return { reason: 'PodCIDRsOutsideSite', field: 'spec.podCIDRs', message };
};

const tooWideProblem = (wide: readonly Prefix[], { metadata: { name } }: Site, length: number): NodeProblem => {
  const message = `${listed(wide.map(formatPrefix))} is wider than the /${length} that a node of Site ${name} gets and is not routed: delete the Node object and register the node anew; where another program assigns the blocks, set assignmentEnabled: false or nodeBlockSizes of that pool`;
  return { reason: 'PodCIDRTooWide', field: 'spec.podCIDRs', message };
};

/**
 * A kubelet can state a block when it registers its Node: one that is wider than what nodes get would leave none for others. Who was listed
 * with it before keeps it.
 */
const confineWidth = (facts: NodeFacts, site: Site | undefined, record: NodeRecord): Confined => {
  if (!site) return { facts, problems: [] };
  const { widestGiven } = siteBlocks(site);
  const isTooWide = (prefix: Prefix): boolean =>
    prefix.length < (widestGiven(prefix) ?? 0) && !record.podCIDRs.has(formatPrefix(prefix));
  const wide = facts.podPrefixes.filter(isTooWide);
  return {
    facts: wide.length === 0 ? facts : withBlocks(facts, (prefix) => !wide.includes(prefix)),
    problems: wide.length === 0 ? [] : [tooWideProblem(wide, site, widestGiven(wide[0]!)!)],
  };
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

/** What a node declares, and what of it may count. */
export type Confine = (
  facts: NodeFacts,
  site: Site | undefined,
  record: NodeRecord,
  /** Its external addresses count: a pool selects it. */
  isGateway: boolean,
) => Confined;

export const createConfinement = (sites: readonly Site[], pools: readonly GatewayPool[]): Confine => {
  const pods = createPodAddresses(sites);
  const confineExternal = createExternalConfinement(sites, pools, pods);
  return (facts, site, record, isGateway) => {
    const addresses = confineAddresses(facts, site, pods, record);
    const external = isGateway
      ? confineExternal(addresses.facts, site, record)
      : { facts: addresses.facts, problems: [] };
    const blocks = confineBlocks(external.facts, site, sites, record);
    const given = confineWidth(blocks.facts, site, record);
    const problems = [addresses, external, blocks, given].flatMap((confined) => confined.problems);
    return { facts: given.facts, problems };
  };
};
