import { release } from 'node:os';
import { containsPrefix, type Family, formatPrefix, hostPrefix, parseAddress, tryParsePrefix } from '@unbounded/ip';
import { findMember, type LocalNode, type NodePlan, type Problem, type World } from '@unbounded/topology';
import type { Measured } from './measured.ts';
import type { Snapshot } from '../world/source.port.ts';

/** What a plan is made for, or why the objects give none for this node. */

interface Parts extends Measured {
  readonly nodeName: string;
  readonly protocols: readonly string[];
}

/** Before Linux 5.14 the first address of a subnet is a broadcast address, which nobody forwards to. */
export const echoFamiliesOf = (kernelRelease: string): readonly Family[] => {
  const [major = 0, minor = 0] = kernelRelease.split('.').map((part) => Number.parseInt(part, 10));
  return major > 5 || (major === 5 && minor >= 14) ? [4, 6] : [6];
};

const STAYS = 'pods start only with a plan, and the last one, if there is any, stays';

const notListed = (name: string, internalIps: readonly string[]): Problem => ({
  reason: 'NodeNotListed',
  message: `no SiteNodeSlice and no GatewayPool lists node ${name}: ${STAYS}; see to it that the nodeCidrs of its Site hold an InternalIP of the node (${internalIps.join(', ')}), and that site-membership runs (for a gateway: gateway-health)`,
});

const noPodCidrs = (name: string): Problem => ({
  reason: 'PodCIDRsMissing',
  message: `Node ${name} has no usable spec.podCIDRs: ${STAYS}; see to it that the podCidrAssignments of its Site select it and have blocks left, or that kube-controller-manager assigns them`,
});

const overlapping = (name: string, blocks: readonly string[], addresses: readonly string[]): Problem => ({
  reason: 'PodCIDRsOverlapUnderlay',
  message: `each pod CIDR of node ${name} (${blocks.join(', ')}) holds an address that must be reached without the overlay (${addresses.join(', ')}): ${STAYS}; correct the cidrBlocks of its Site, then delete and re-create the Node`,
});

/**
 * Both ends of a link decide from what is listed: what the node says anew counts once its peers hear it, which takes as long as a controller
 * takes, or is away.
 */
const listedFirst = (own: readonly string[], listed: readonly string[]): readonly string[] => [
  ...listed.filter((one) => own.includes(one)),
  ...own.filter((one) => !listed.includes(one)),
];

/** The member that the objects list, with what the Node itself says. */
export const findLocalNode = (
  { node }: Snapshot,
  world: World,
  { nodeName, protocols, underlay, pathMtuBytes, keys, established, protectedAddresses }: Parts,
): LocalNode | Problem => {
  const listed = findMember(world, nodeName);
  if (!listed || !node) return notListed(nodeName, node?.internalIps ?? []);
  const assigned = node.podCidrs.flatMap((text) => tryParsePrefix(text) ?? []);
  if (assigned.length === 0) return noPodCidrs(nodeName);
  const hosts = protectedAddresses.map(({ address, role }) => ({
    prefix: hostPrefix(parseAddress(address)),
    address,
    role,
  }));
  const hitsOf = (block: (typeof assigned)[number]) => hosts.filter(({ prefix }) => containsPrefix(block, prefix));
  // A bridge with such a block would take the address for that of a pod.
  const podCidrs = assigned.filter((block) => hitsOf(block).length === 0);
  if (podCidrs.length === 0) {
    const hits = assigned.flatMap(hitsOf).map(({ address, role }) => `${address}, ${role}`);
    return overlapping(nodeName, assigned.map(formatPrefix), hits);
  }
  // Peers know the node by these; without one it still needs an address of its own.
  const usable = node.internalIps.filter((address) => world.confinement.hasAddress(listed, address));
  const internalIps = usable.length > 0 ? listedFirst(usable, listed.internalIps) : node.internalIps;
  const agreed = listed.protocols?.filter((one) => protocols.includes(one));
  const member = { ...listed, podCidrs, internalIps, protocols: agreed, ...keys };
  return {
    ...{ member, underlayMtuBytes: underlay.mtuBytes, pathMtuBytes, established, protectedAddresses },
    echoFamilies: echoFamiliesOf(release()),
  };
};

/** Why objects that are there are no reason for another plan: to plan from half a description would take pods off the network. */
export const missingSite = (plan: NodePlan | undefined, { member }: LocalNode, world: World): Problem | undefined => {
  if (world.sites.has(member.site) || (member.site === '' && plan?.site === '')) return undefined;
  if (!plan && member.site === '') return undefined; // a gateway that never had one
  const site = member.site || plan?.site;
  return {
    reason: 'SiteMissing',
    message: `Site ${site} of node ${member.name} cannot be found: the last plan stays; create the Site again, or correct its nodeCidrs so that they hold an InternalIP of the node (${member.internalIps.join(', ')})`,
  };
};
