import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inNamespace, run, runAsync } from '../machine/command.ts';
import { state } from '../machine/paths.ts';
import { type Family, familyOf, PLANS } from '../layout/addresses.ts';
import {
  isRouted,
  type LabLayout,
  type LabNode,
  type LabSite,
  namespaceOf,
  routerName,
  WAN,
  worldIps,
} from '../layout/layout.ts';

/**
 * The underlay: a WAN segment with a host of the outside world, and per site a LAN behind a router that translates
 * addresses. A LAN has no route to another LAN, and a router lets nothing in but what a 1:1 mapping names.
 */

const wan = namespaceOf(WAN.name);
const lanAddress = (ip: string): string => `${ip}/${PLANS[familyOf(ip)].lanLength}`;
const wanAddress = (ip: string): string => `${ip}/${PLANS[familyOf(ip)].wanLength}`;

/** Joins a namespace to a bridge that is in another one. */
interface Plug {
  readonly namespace: string;
  readonly device: string;
  /** With lengths. */
  readonly addresses: readonly string[];
  readonly bridge: { readonly namespace: string; readonly name: string };
}

const plugs = (layout: LabLayout): Plug[] => {
  const onWan = { namespace: wan, name: 'wan0' };
  const all: Plug[] = [
    {
      namespace: namespaceOf(WAN.worldName),
      device: 'eth0',
      addresses: worldIps(layout).map(wanAddress),
      bridge: onWan,
    },
  ];
  for (const site of layout.sites) {
    const router = namespaceOf(routerName(site.name));
    all.push({ namespace: router, device: 'wan0', addresses: site.routerWanIps.map(wanAddress), bridge: onWan });
    for (const node of site.nodes) {
      const namespace = namespaceOf(node.name);
      all.push({
        namespace,
        device: 'eth0',
        addresses: node.internalIps.map(lanAddress),
        bridge: { namespace: router, name: 'lan0' },
      });
      if (node.external?.by === 'interface') {
        all.push({ namespace, device: 'eth1', addresses: node.external.ips.map(wanAddress), bridge: onWan });
      }
    }
  }
  return all;
};

/** The switch's end of a node's cable. */
export const switchPort = (layout: LabLayout, node: string, device: string): { namespace: string; port: string } => {
  const index = plugs(layout).findIndex((plug) => plug.namespace === namespaceOf(node) && plug.device === device);
  const plug = plugs(layout)[index];
  if (!plug) throw new Error(`node ${node} has no cable at ${device}`);
  return { namespace: plug.bridge.namespace, port: `p${index}` };
};

const ipBatch = (namespace: string, lines: readonly string[]): Promise<string> =>
  runAsync(['ip', '-n', namespace, '-batch', '-'], { input: `${lines.join('\n')}\n` });

const mappings = (site: LabSite): LabNode[] => site.nodes.filter((node) => node.external?.by === 'router');

/** Translation of one family. Between routed LANs nothing is translated. */
const natTable = (site: LabSite, family: Family, routed: boolean): string => {
  const ip = family === 4 ? 'ip' : 'ip6';
  const at = (ips: readonly string[]): string => ips.find((candidate) => familyOf(candidate) === family)!;
  const dnat = mappings(site).map((node) => `${ip} daddr ${at(node.external!.ips)} dnat to ${at(node.internalIps)}`);
  const snat = mappings(site).map(
    (node) => `${ip} saddr ${at(node.internalIps)} oifname wan0 snat to ${at(node.external!.ips)}`,
  );
  const { lans } = PLANS[family];
  return `table ${ip} router {
  chain prerouting { type nat hook prerouting priority dstnat
    ${dnat.join('\n    ')}
  }
  chain postrouting { type nat hook postrouting priority srcnat
    ${routed ? `${ip} saddr ${lans} ${ip} daddr ${lans} return` : ''}
    ${snat.join('\n    ')}
    oifname wan0 masquerade
  }
  chain forward { type filter hook forward priority filter; policy drop
    ct state established,related accept
    iifname lan0 accept
    ct status dnat accept
    ${routed ? `${ip} saddr ${lans} ${ip} daddr ${lans} accept` : ''}
  }
}
`;
};

const makeRouter = async (site: LabSite, layout: LabLayout): Promise<void> => {
  const router = namespaceOf(routerName(site.name));
  const routed = isRouted(layout);
  const others = routed ? layout.sites.filter((other) => other !== site) : [];
  await ipBatch(router, [
    ...site.routerLanIps.map((ip) => `addr add ${lanAddress(ip)} dev lan0 nodad`),
    ...mappings(site).flatMap((node) => node.external!.ips.map((ip) => `addr add ${wanAddress(ip)} dev wan0 nodad`)),
    ...others.flatMap((other) => other.lans.map((lan, index) => `route add ${lan} via ${other.routerWanIps[index]}`)),
  ]);
  run([...inNamespace(router), 'sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1']);
  const rules = layout.underlayFamilies.map((family) => natTable(site, family, routed)).join('');
  await runAsync([...inNamespace(router), 'nft', '-f', '-'], { input: rules });
};

/**
 * The site's 1:1 NAT moves to the addresses of another layout, as when a provider gives a new one: at once, and with what
 * the router knew of flows forgotten. What still comes to a former address reaches nobody.
 */
export const moveNat = (before: LabSite, after: LabSite, layout: LabLayout): void => {
  const router = namespaceOf(routerName(before.name));
  const mapped = (site: LabSite): string[] => mappings(site).flatMap((node) => node.external!.ips);
  const [left, taken] = [mapped(before), mapped(after)];
  const changes = [
    ...taken.filter((ip) => !left.includes(ip)).map((ip) => `addr add ${wanAddress(ip)} dev wan0 nodad`),
    ...left.filter((ip) => !taken.includes(ip)).map((ip) => `addr del ${wanAddress(ip)} dev wan0`),
  ];
  run(['ip', '-n', router, '-batch', '-'], { input: `${changes.join('\n')}\n` });
  const rules = layout.underlayFamilies.map((family) => {
    const table = `table ${family === 4 ? 'ip' : 'ip6'} router`;
    return `delete ${table}\n${natTable(after, family, isRouted(layout))}`;
  });
  run([...inNamespace(router), 'nft', '-f', '-'], { input: rules.join('') });
  run([...inNamespace(router), 'conntrack', '-F']);
};

/** Names of all the lab's namespaces. */
const namespacesOf = (layout: LabLayout): string[] => [
  wan,
  namespaceOf(WAN.worldName),
  ...layout.sites.map((site) => namespaceOf(routerName(site.name))),
  ...layout.nodes.map((node) => namespaceOf(node.name)),
];

const madeFile = join(state, 'underlay-made');

/** Namespaces for the layout, all new: what an interrupted `up` left half-made is made again. */
const makeNamespaces = (namespaces: readonly string[]): void => {
  for (const name of namespaces.filter((known) => existsSync(`/run/netns/${known}`)))
    run(['ip', 'netns', 'delete', name]);
  run(['ip', '-batch', '-'], { input: namespaces.map((name) => `netns add ${name}\n`).join('') });
};

/** Makes the namespaces, links, addresses, routes and routers. Nothing appears in the machine's own namespace. */
export const makeUnderlay = async (layout: LabLayout): Promise<void> => {
  if (existsSync(madeFile)) return;
  const namespaces = namespacesOf(layout);
  makeNamespaces(namespaces);
  const bridges = new Map<string, string>([[wan, 'wan0']]);
  for (const site of layout.sites) bridges.set(namespaceOf(routerName(site.name)), 'lan0');
  for (const namespace of namespaces) {
    const bridge = bridges.get(namespace);
    // No spanning tree, and no detour of bridged frames through netfilter: the segment is a plain switch.
    await ipBatch(namespace, [
      'link set lo up',
      ...(bridge ? [`link add ${bridge} type bridge`, `link set ${bridge} up`] : []),
    ]);
  }
  for (const [index, plug] of plugs(layout).entries()) {
    await ipBatch(plug.bridge.namespace, [
      `link add p${index} type veth peer name ${plug.device} netns ${plug.namespace}`,
      `link set p${index} master ${plug.bridge.name} up`,
    ]);
    await ipBatch(plug.namespace, [
      ...plug.addresses.map((address) => `addr add ${address} dev ${plug.device} nodad`),
      `link set ${plug.device} up`,
    ]);
  }
  for (const site of layout.sites) {
    await makeRouter(site, layout);
    const defaults = site.routerLanIps.map((ip) => `route add default via ${ip}`);
    for (const node of site.nodes) await ipBatch(namespaceOf(node.name), defaults);
  }
  writeFileSync(madeFile, '');
};
