import { PLANS } from '../layout/addresses.ts';
import { isRouted, type LabLayout, type LabNode, WAN, worldIps } from '../layout/layout.ts';
import { substrateOf } from '../substrate/substrates.ts';

/** The lab's topology in text. */

const describeNode = (node: LabNode): string => {
  const by = node.external?.by === 'interface' ? 'own interface' : '1:1 NAT';
  const use = node.role === 'control-plane' ? ': where other sites’ nodes find the API server' : '';
  const external = node.external ? `  external ${node.external.ips.join(', ')} (${by}${use})` : '';
  return `${node.name.padEnd(8)}${node.role.padEnd(15)}${node.internalIps.join(', ').padEnd(12)}${external}`.trimEnd();
};

export const drawTopology = (layout: LabLayout): string => {
  const wan = layout.underlayFamilies.map((family) => PLANS[family].wan).join(', ');
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

/** What is worth a look, in words that work as they stand. */
export const whatNext = (
  layout: LabLayout,
  pods: readonly { readonly node: string; readonly ip: string }[],
): string => {
  const { nodes, sites } = layout;
  const { hints } = substrateOf(layout);
  const from = nodes.find(({ role }) => role === 'worker') ?? nodes[0]!;
  const far = nodes.findLast(({ site }) => site !== from.site) ?? nodes.at(-1)!;
  const pod = pods.find(({ node }) => node === far.name)?.ip;
  const lines: (readonly [string, string])[] = [
    ['verify', hints.verify],
    ...(hints.dashboard === undefined ? [] : [['dashboard', hints.dashboard] as const]),
    ...(layout.options.prometheus ? [['prometheus', 'metrics and alerts, at http://localhost:9090'] as const] : []),
    ...hints.more.map((command) => [command, ''] as const),
    [`exec ${from.name} -- ip route`, 'a command on a node'],
    ...(pod ? ([[`exec ${from.name} -- ping -c3 ${pod}`, `a pod on ${far.name}`]] as const) : []),
    ...(pod && sites.length > 1
      ? ([['capture wan udp', 'what passes between the sites: ping in another terminal meanwhile']] as const)
      : []),
    [`logs node-dataplane ${from.name}`, 'what an agent says'],
    ['down', 'takes everything away'],
  ];
  return ['Try next:', ...lines.map(([words, what]) => `  tools/lab ${words.padEnd(44)} ${what}`.trimEnd())].join('\n');
};
