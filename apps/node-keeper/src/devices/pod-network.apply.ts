import { existsSync, readFileSync } from 'node:fs';
import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { type PodNetwork, TAILNET_INTERFACE } from '@unbounded/keeper-protocol';
import { type ApplyResult, createTun, type Link, type RouteSocket } from '@unbounded/netlink';
import type { Nftables } from '@unbounded/nftables';
import { POD_TABLE, podFirewall } from './pod-firewall.plan.ts';
import { diffNetwork, type FoundNetwork, type NetworkDiff } from './pod-network.diff.ts';

/** Sets up the network of a pod's device, in whose network namespace the process is. */

/** Of packets in a tailnet, bytes, as all clients have it. */
const MTU = 1280;
/**
 * Packets that wait while the device has no processor. The 500 of a TUN are full after a quarter of a second at 2,000 a second; with 1,000 some
 * were lost while the agents of a busy machine started.
 */
const QUEUE_PACKETS = 3000;
const IPV6_SETTINGS = '/proc/sys/net/ipv6/conf';

/** In the pod's network namespace. */
export interface PodKernel {
  readonly net: RouteSocket;
  readonly nft: Nftables;
}

export interface AppliedNetwork {
  /** false: IPv6 is off in the pod. */
  readonly hasIPv6: boolean;
}

/** As only ours are: a pod may have a TUN or a TAP of its own, by that name too. */
const isOurs = ({ kind }: Link): boolean =>
  kind?.kind === 'tun' && kind.mode === 'tun' && kind.persistent && kind.vnetHeader;

/** A persistent TUN: it stays when the process ends that carries its packets. @throws Error when another interface has its name */
const ensureTun = async (net: RouteSocket): Promise<Link> => {
  const former = await net.links.get(TAILNET_INTERFACE);
  if (!former) createTun({ name: TAILNET_INTERFACE });
  const link = former ?? (await net.links.get(TAILNET_INTERFACE))!;
  if (!isOurs(link))
    throw new Error(`the pod has an interface ${TAILNET_INTERFACE} that is none of ours: rename it, or do not join`);
  return link;
};

/** It cannot be turned on from here: settings of the kernel are read-only in containers. */
const ipv6Of = (): { readonly isKnown: boolean; readonly isOn: boolean } => {
  const file = `${IPV6_SETTINGS}/${TAILNET_INTERFACE}/disable_ipv6`;
  return { isKnown: existsSync(IPV6_SETTINGS), isOn: existsSync(file) && readFileSync(file, 'utf8').trim() === '0' };
};

const find = async (net: RouteSocket, link: number): Promise<FoundNetwork> => ({
  addresses: await net.addresses.list({ link }),
  rules: await net.rules.list(),
  routes: await net.routes.list({ protocol: ROUTE_PROTOCOL }),
});

const failIfAny = (what: string, results: readonly ApplyResult[], isNoMatter: readonly string[] = []): void => {
  for (const result of results)
    if (!result.ok && !isNoMatter.includes(result.error.code))
      throw new Error(`${what}: ${result.error.message}`, { cause: result.error });
};

/** What somebody has added or removed meanwhile. */
const [ADDED, GONE] = [['EEXIST'], ['ENOENT', 'ESRCH', 'EADDRNOTAVAIL']];

type Subject = keyof NetworkDiff;
const verbsOf = (net: RouteSocket) => ({
  addresses: net.addresses,
  rules: net.rules,
  otherRoutes: net.routes,
  deviceRoutes: net.routes,
});

const change = async (net: RouteSocket, diff: NetworkDiff, op: 'add' | 'remove', subjects: readonly Subject[]) => {
  for (const subject of subjects) {
    const verbs = verbsOf(net)[subject] as Pick<RouteSocket['routes'], 'apply'>;
    const values = diff[subject][op] as NetworkDiff['otherRoutes']['add'];
    const changes = values.map((value) => ({ op: op === 'add' ? ('create' as const) : ('delete' as const), value }));
    failIfAny(`${op} ${subject}`, await verbs.apply(changes), op === 'add' ? ADDED : GONE);
  }
};

const withoutIPv6 = ({ addresses, rules, routes }: PodNetwork): PodNetwork => ({
  addresses: addresses.filter((address) => !address.includes(':')),
  rules: rules.filter(({ to }) => !to.includes(':')),
  routes: routes.filter(({ to }) => !to.includes(':')),
});

/**
 * What must not leave by another interface is stopped first: by the rules, and by routes that need no interface. Nothing comes in by the
 * device before it is looked at. Nothing is taken away before what replaces it stands.
 * @throws Error naming what the kernel refuses
 */
export const applyNetwork = async ({ net, nft }: PodKernel, wanted: PodNetwork): Promise<AppliedNetwork> => {
  const { index, mtu, txQueuePackets, up } = await ensureTun(net);
  const ipv6 = ipv6Of();
  const network = ipv6.isKnown ? wanted : withoutIPv6(wanted);
  const diff = diffNetwork(network, await find(net, index), index, ipv6.isOn);
  await change(net, diff, 'add', ['otherRoutes', 'rules']);
  if (!(await nft.matches(podFirewall))) await nft.replaceTable(podFirewall);
  if (mtu !== MTU || txQueuePackets !== QUEUE_PACKETS || !up)
    await net.links.modify(index, { mtu: MTU, txQueuePackets: QUEUE_PACKETS, up: true });
  await change(net, diff, 'add', ['addresses', 'deviceRoutes']);
  await change(net, diff, 'remove', ['deviceRoutes', 'otherRoutes', 'rules', 'addresses']);
  return { hasIPv6: ipv6.isOn };
};

/** Leaves the pod as it was. @throws Error naming what the kernel refuses */
export const removeNetwork = async ({ net, nft }: PodKernel): Promise<void> => {
  const found = await net.links.get(TAILNET_INTERFACE);
  const link = found && isOurs(found) ? found : undefined;
  const nothing = { addresses: [], rules: [], routes: [] };
  const diff = diffNetwork(nothing, await find(net, link?.index ?? 0), link?.index ?? 0, true);
  if (link) await net.links.delete(link.index);
  const left = await net.routes.list({ protocol: ROUTE_PROTOCOL });
  const routes = diffNetwork(nothing, { addresses: [], rules: [], routes: left }, 0, true);
  await change(net, { ...routes, rules: diff.rules }, 'remove', ['rules', 'otherRoutes', 'deviceRoutes']);
  await nft.deleteTable(POD_TABLE.family, POD_TABLE.name);
};
