import { findMember, planNode } from '../node.plan.ts';
import type { LocalNode } from '../links/local-node.ts';
import type { BlockPlan, Destination, NextHop, NodePlan } from '../plan.ts';
import type { Holding } from '../world/holdings.ts';
import { parseWorld } from '../world/parse-world.ts';
import type { TopologyObjects } from '../world/world.ts';

/** A plan as a table that a person can check. */

const hopText = (hop: NextHop): string =>
  hop.protocol === 'WireGuard' ? `${hop.node} by ${hop.device}` : `${hop.node} by ${hop.protocol} to ${hop.remoteIp}`;

const destinationText = (to: Destination): string => {
  if (to === 'pending') return 'pending';
  if ('gateways' in to) return `natively to ${to.gateways.join(' ')}`;
  return 'group' in to ? `group ${to.group}` : hopText(to.nextHop);
};

const blockText = ({ prefix, to, mtuBytes, use, alsoFrom }: BlockPlan): string =>
  [
    `block ${prefix}: ${destinationText(to)} mtu ${mtuBytes}`,
    ...(use === undefined ? [] : [`(${use})`]),
    ...(alsoFrom === undefined ? [] : [`also from ${destinationText(alsoFrom)}`]),
  ].join(' ');

/** The plan of a node of the objects. */
export const planIn = (
  objects: TopologyObjects,
  node: string,
  local: Partial<LocalNode> = {},
  held?: readonly Holding[],
): NodePlan => {
  const world = parseWorld(objects, held);
  return planNode(world, { member: findMember(world, node)!, underlayMtuBytes: 1500, ...local });
};

export const tableOf = (plan: NodePlan): string =>
  [
    `${plan.role} ${plan.node} mtu ${plan.mtuBytes}`,
    ...plan.tunnels.map(
      ({ node, protocol, remoteIp, mtuBytes, sources, isTransit }) =>
        `tunnel ${protocol} ${mtuBytes} ${node} at ${remoteIp}${isTransit ? ' transit' : ''}: ${sources.join(' ')}`,
    ),
    ...plan.wireGuard.flatMap(({ name, mtuBytes, peers }) =>
      peers.map(
        ({ node, endpoint, allowedIps, persistentKeepaliveSeconds: keepalive }) =>
          `${name} ${mtuBytes} ${node} at ${endpoint ?? '?'}${keepalive ? ` every ${keepalive} s` : ''}: ${allowedIps.join(' ')}`,
      ),
    ),
    ...plan.blocks.map(blockText),
    ...plan.groups.flatMap(({ name, members }) =>
      members.map((member) => `group ${name}: ${member.tier} ${hopText(member)}`),
    ),
    ...(plan.contained.length > 0 ? [`contained ${plan.contained.join(' ')}`] : []),
    ...(plan.direct.length > 0 ? [`direct ${plan.direct.join(' ')}`] : []),
    ...plan.probes.map(({ node, localAddress, address }) => `probe ${node}: ${localAddress} > ${address}`),
    ...(plan.servedSites.length > 0 ? [`serves ${plan.servedSites.join(' ')}`] : []),
    ...plan.problems.map(({ reason }) => `problem ${reason}`),
  ].join('\n');
