import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inNamespace, run, runAsync } from './command.ts';
import { state } from './paths.ts';
import { type LabLayout, type LabNode, type LabSite, namespaceOf, routerName, WAN } from './layout.ts';

/**
 * The underlay: a WAN segment with a host of the outside world, and per site a LAN behind a router that translates
 * addresses. A LAN has no route to another LAN, and a router lets nothing in but what a 1:1 mapping names.
 */

const wan = namespaceOf(WAN.name);
const lanLength = 24;

/** Joins a namespace to a bridge that is in another one. */
interface Plug {
  readonly namespace: string;
  readonly device: string;
  readonly address: string;
  readonly bridge: { readonly namespace: string; readonly name: string };
}

const plugs = (layout: LabLayout): Plug[] => {
  const onWan = { namespace: wan, name: 'wan0' };
  const all: Plug[] = [
    { namespace: namespaceOf(WAN.worldName), device: 'eth0', address: `${WAN.worldIp}/${WAN.length}`, bridge: onWan },
  ];
  for (const site of layout.sites) {
    const router = namespaceOf(routerName(site.name));
    all.push({ namespace: router, device: 'wan0', address: `${site.routerWanIp}/${WAN.length}`, bridge: onWan });
    for (const node of site.nodes) {
      const namespace = namespaceOf(node.name);
      all.push({
        namespace,
        device: 'eth0',
        address: `${node.internalIp}/${lanLength}`,
        bridge: { namespace: router, name: 'lan0' },
      });
      if (node.external?.by === 'interface') {
        all.push({ namespace, device: 'eth1', address: `${node.external.ip}/${WAN.length}`, bridge: onWan });
      }
    }
  }
  return all;
};

const ipBatch = (namespace: string, lines: readonly string[]): Promise<string> =>
  runAsync(['ip', '-n', namespace, '-batch', '-'], { input: `${lines.join('\n')}\n` });

const mappings = (site: LabSite): LabNode[] => site.nodes.filter((node) => node.external?.by === 'router');

const natRules = (site: LabSite): string => {
  const dnat = mappings(site).map((node) => `ip daddr ${node.external!.ip} dnat to ${node.internalIp}`);
  const snat = mappings(site).map((node) => `ip saddr ${node.internalIp} oifname wan0 snat to ${node.external!.ip}`);
  return `table ip router {
  chain prerouting { type nat hook prerouting priority dstnat
    ${dnat.join('\n    ')}
  }
  chain postrouting { type nat hook postrouting priority srcnat
    ${snat.join('\n    ')}
    oifname wan0 masquerade
  }
  chain forward { type filter hook forward priority filter; policy drop
    ct state established,related accept
    iifname lan0 accept
    ct status dnat accept
  }
}
`;
};

const makeRouter = async (site: LabSite): Promise<void> => {
  const router = namespaceOf(routerName(site.name));
  await ipBatch(
    router,
    mappings(site).map((node) => `addr add ${node.external!.ip}/${WAN.length} dev wan0`),
  );
  run([...inNamespace(router), 'sysctl', '-qw', 'net.ipv4.ip_forward=1']);
  await runAsync([...inNamespace(router), 'nft', '-f', '-'], { input: natRules(site) });
};

/** Names of all the lab's namespaces. */
export const namespacesOf = (layout: LabLayout): string[] => [
  wan,
  namespaceOf(WAN.worldName),
  ...layout.sites.map((site) => namespaceOf(routerName(site.name))),
  ...layout.nodes.map((node) => namespaceOf(node.name)),
];

const madeFile = join(state, 'fabric-made');

/** Namespaces for the layout, all new: what an interrupted `up` left half-made is made again. */
const makeNamespaces = (namespaces: readonly string[]): void => {
  for (const name of namespaces.filter((known) => existsSync(`/run/netns/${known}`))) run(['ip', 'netns', 'delete', name]);
  run(['ip', '-batch', '-'], { input: namespaces.map((name) => `netns add ${name}\n`).join('') });
};

/** Makes the namespaces, links, addresses, routes and routers. Nothing appears in the machine's own namespace. */
export const makeFabric = async (layout: LabLayout): Promise<void> => {
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
    await ipBatch(plug.namespace, [`addr add ${plug.address} dev ${plug.device}`, `link set ${plug.device} up`]);
  }
  for (const site of layout.sites) {
    const router = namespaceOf(routerName(site.name));
    await ipBatch(router, [`addr add ${site.routerLanIp}/${lanLength} dev lan0`]);
    await makeRouter(site);
    for (const node of site.nodes) await ipBatch(namespaceOf(node.name), [`route add default via ${site.routerLanIp}`]);
  }
  writeFileSync(madeFile, '');
};
