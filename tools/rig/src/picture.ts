import { PLANS } from './addresses.ts';
import { isRouted, type LabLayout, type LabNode, WAN, worldIps } from './layout.ts';

/** The lab's topology in text. */

const describeNode = (node: LabNode): string => {
  const external = node.external
    ? `  external ${node.external.ips.join(', ')} (${node.external.by === 'interface' ? 'own interface' : '1:1 NAT'})`
    : '';
  return `${node.name.padEnd(8)}${node.role.padEnd(15)}${node.internalIps.join(', ').padEnd(12)}${external}`;
};

export const drawTopology = (layout: LabLayout): string => {
  const wan = layout.families.map((family) => PLANS[family].wan).join(', ');
  const router = isRouted(layout) ? 'routes between LANs, NAT to the world' : 'NAT';
  const lines = [`WAN ${wan} ── ${WAN.worldName} ${worldIps(layout).join(', ')}`];
  for (const [index, site] of layout.sites.entries()) {
    const last = index === layout.sites.length - 1;
    lines.push(
      `${last ? '└' : '├'}── router ${site.routerWanIps.join(', ')} (${router}) ── site ${site.name}: LAN ${site.lans.join(', ')}, pods ${site.podPools.join(', ')}`,
    );
    for (const [at, node] of site.nodes.entries()) {
      lines.push(`${last ? ' ' : '│'}     ${at === site.nodes.length - 1 ? '└' : '├'}── ${describeNode(node)}`);
    }
  }
  return lines.join('\n');
};

export const whatNext = `Try next:
  tools/lab verify                      every pod to every pod, node, Service and the outside world
  tools/lab kubectl get nodes,sites,gatewaypools -o wide
  tools/lab exec s1-w1 -- ip route      a shell command on a node
  tools/lab logs node-dataplane s1-w1   what an agent says
  tools/lab capture wan                 what passes between the sites
  tools/lab down                        takes everything away`;
