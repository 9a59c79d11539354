import type { Holding } from '../world/holdings.ts';
import { findMember, planNode } from '../node.plan.ts';
import { parseWorld } from '../world/parse-world.ts';
import type { NextHop, NodePlan, RouteVia } from '../plan.ts';
import type { LocalNode } from '../links/local-node.ts';
import type { TopologyObjects } from '../world/world.ts';

/** A plan as a table that a person can check, for golden tests. */

const hopText = ({ node, device, remoteIp, gatewayIp }: NextHop): string =>
  [node, device, ...(remoteIp ? [remoteIp] : []), ...(gatewayIp ? [`via ${gatewayIp}`] : [])].join(' ');

const viaText = (via: RouteVia): string => {
  if (typeof via === 'string') return via;
  if ('gateways' in via) return `plainly ${via.gateways.join(' ')}`;
  if ('group' in via) return `group ${via.group}`;
  return [via.device, via.remoteIp, via.gatewayIp && `via ${via.gatewayIp}`].filter(Boolean).join(' ');
};

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
    ...plan.tunnels.map(({ device, mtuBytes, remoteIp }) => `device ${device} ${mtuBytes} ${remoteIp ?? 'to all'}`),
    ...plan.wireGuard.flatMap(({ name, mtuBytes, peers }) =>
      peers.map(
        ({ node, endpoint, allowedIps, persistentKeepaliveSeconds: keepalive }) =>
          `${name} ${mtuBytes} ${node} at ${endpoint ?? '?'}${keepalive ? ` every ${keepalive} s` : ''}: ${allowedIps.join(' ')}`,
      ),
    ),
    ...plan.endpoints.map(
      ({ prefix, via }) => `entry ${prefix}: ${'group' in via ? `group ${via.group}` : hopText(via.nextHop)}`,
    ),
    ...plan.groups.flatMap(({ name, members }) =>
      members.map((member) => `group ${name}: ${member.tier} ${hopText(member)}`),
    ),
    ...plan.routes.map(({ prefix, via, mtuBytes }) => `route ${prefix}: ${viaText(via)} mtu ${mtuBytes}`),
    ...(plan.transitRoutes ?? []).map(
      ({ prefix, via, mtuBytes }) => `transit ${prefix}: ${viaText(via)} mtu ${mtuBytes}`,
    ),
    ...plan.probes.map(({ node, localAddress, address }) => `probe ${node}: ${localAddress} > ${address}`),
    ...(plan.servedSites.length > 0 ? [`serves ${plan.servedSites.join(' ')}`] : []),
    ...plan.forwarders.map((address) => `forwarder ${address}`),
    ...plan.problems.map(({ reason }) => `problem ${reason}`),
  ].join('\n');
