import { type LabLayout, type LabNode, WAN } from './layout.ts';

/** The lab's topology in text. */

const describeNode = (node: LabNode): string => {
  const external = node.external
    ? `  external ${node.external.ip} (${node.external.by === 'interface' ? 'own interface' : '1:1 NAT'})`
    : '';
  return `${node.name.padEnd(8)}${node.role.padEnd(15)}${node.internalIp.padEnd(12)}${external}`;
};

export const drawTopology = (layout: LabLayout): string => {
  const lines = [`WAN ${WAN.prefix} ── ${WAN.worldName} ${WAN.worldIp}`];
  for (const [index, site] of layout.sites.entries()) {
    const last = index === layout.sites.length - 1;
    lines.push(
      `${last ? '└' : '├'}── router ${site.routerWanIp} (NAT) ── site ${site.name}: LAN ${site.lan}, pods ${site.podPool}`,
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
