import {
  findMember,
  type Holding,
  type LocalNode,
  parseWorld,
  planNode,
  type TopologyObjects,
} from '@unbounded/topology';
import type { DataPathKind, KernelHop, KernelPlan, RouteVia } from './kernel-plan.ts';
import { renderPlan } from './render.ts';

/** A rendered plan as a table that a person can check, for golden tests. */

const hopText = ({ node, device, remoteIp, gatewayIp, isEcho }: KernelHop): string =>
  [node, device, remoteIp, gatewayIp && `via ${gatewayIp}`, isEcho && 'and back'].filter(Boolean).join(' ');

const viaText = (via: RouteVia): string => {
  if (typeof via === 'string') return via;
  if ('gateways' in via) return `plainly ${via.gateways.join(' ')}`;
  if ('group' in via) return `group ${via.group}`;
  return [via.device, via.remoteIp, via.gatewayIp && `via ${via.gatewayIp}`].filter(Boolean).join(' ');
};

/** What a node of the objects has in its kernel. */
export const renderedIn = (
  objects: TopologyObjects,
  node: string,
  { dataplane = 'ebpf', ...local }: Partial<LocalNode> & { readonly dataplane?: DataPathKind } = {},
  held?: readonly Holding[],
): KernelPlan => {
  const world = parseWorld(objects, held);
  return renderPlan(dataplane, planNode(world, { member: findMember(world, node)!, underlayMtuBytes: 1500, ...local }));
};

export const renderedTable = (plan: KernelPlan): string =>
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
    ...(plan.echoes ?? []).map(({ node, localAddress, address }) => `echo ${node}: ${localAddress} > ${address}`),
    ...(plan.servedSites.length > 0 ? [`serves ${plan.servedSites.join(' ')}`] : []),
    ...plan.forwarders.map((address) => `forwarder ${address}`),
    ...plan.problems.map(({ reason }) => `problem ${reason}`),
  ].join('\n');
