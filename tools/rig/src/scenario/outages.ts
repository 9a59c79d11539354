import { setTimeout as delay } from 'node:timers/promises';
import { inNamespace, run } from '../machine/command.ts';
import { kubectl } from '../kubernetes/control-plane.ts';
import { switchPort } from '../underlay/underlay.ts';
import { nftFamilyOf } from '../layout/addresses.ts';
import { type LabLayout, type LabNode, namespaceOf, routerName } from '../layout/layout.ts';
import { linkCounters, timeUntil } from './scenario.ts';
import { inNode, onNode, tryOnNode } from '../node/node.ts';
import { peerStates } from '../apps/agent-state.ts';

/** Ways in which a network breaks, and the way back. */

export interface Outage {
  begin(): void;
  end(): void;
}

const cable = (layout: LabLayout, node: string, device: string): Outage => {
  const { namespace, port } = switchPort(layout, node, device);
  const set = (state: 'up' | 'down'): void => void run(['ip', '-n', namespace, 'link', 'set', port, state]);
  return { begin: () => set('down'), end: () => set('up') };
};

/** Packets that match one of the expressions are dropped by a router. */
const routerDrop = (site: string, ...matches: string[]): Outage => {
  const nft = (...args: string[]): void => void run([...inNamespace(namespaceOf(routerName(site))), 'nft', ...args]);
  return {
    begin() {
      nft('add', 'table', 'inet', 'outage');
      nft('add', 'chain', 'inet', 'outage', 'c', '{ type filter hook forward priority -400; }');
      for (const match of matches) nft('add', 'rule', 'inet', 'outage', 'c', ...match.split(' '), 'drop');
    },
    end: () => nft('delete', 'table', 'inet', 'outage'),
  };
};

/** No UDP leaves or enters a site: no tunnel to others; TCP passes. */
export const blockUdp = (site: string): Outage => routerDrop(site, 'meta l4proto udp');

const devicesOf = (node: LabNode): string[] => (node.external?.by === 'interface' ? ['eth0', 'eth1'] : ['eth0']);

/** The node is off: no cable of it carries anything. */
export const powerOff = (layout: LabLayout, node: LabNode): Outage => {
  const cables = devicesOf(node).map((device) => cable(layout, node.name, device));
  return { begin: () => cables.forEach((each) => each.begin()), end: () => cables.forEach((each) => each.end()) };
};

/** Its agents live, and a table of the administrator drops what it forwards. */
export const noForwarding = (node: string): Outage => ({
  begin() {
    for (const line of [
      'add table inet admin',
      'add chain inet admin forward { type filter hook forward priority 5; }',
      'add rule inet admin forward drop comment "no routing"',
    ])
      onNode(node, 'nft', line);
  },
  end: () => void tryOnNode(node, 'nft', 'delete table inet admin'),
});

/** The node is up and reaches its site, but not the WAN. */
export const cutWan = (layout: LabLayout, node: LabNode): Outage =>
  node.external?.by === 'interface'
    ? cable(layout, node.name, 'eth1')
    : routerDrop(node.site, `ip saddr ${node.internalIp} oifname wan0`);

/** Datagrams above a size are lost between a site and the WAN, without a word to anybody. */
export const blackHole = (layout: LabLayout, site: string, largestBytes: number): Outage => {
  const large = `meta l4proto udp meta length > ${largestBytes}`;
  const drop = routerDrop(site, `iifname wan0 ${large}`, `oifname wan0 ${large}`);
  // Between namespaces packets pass in bundles, as they do between a host and its card: here as they are on a wire.
  const setBundle = (segments: number): void => {
    for (const node of layout.nodes.filter(({ role }) => role === 'gateway'))
      for (const device of devicesOf(node))
        onNode(node.name, 'ip', 'link', 'set', device, 'gso_max_segs', String(segments));
  };
  return {
    begin() {
      setBundle(1);
      drop.begin();
    },
    end() {
      drop.end();
      setBundle(65_535);
    },
  };
};

/**
 * Nothing passes between two nodes any more, while both go on with all others; `oneWay`: only what the peer sends is lost.
 * It is dropped as it arrives, before anything of ours could see it.
 */
export const cutLink = (node: LabNode, peer: LabNode, { oneWay = false } = {}): Outage => {
  const addresses = [...peer.internalIps, ...(peer.external?.ips ?? [])];
  const rule = (direction: 'saddr' | 'daddr', address: string): string =>
    `${nftFamilyOf(address)} ${direction} ${address} drop`;
  const chain = (hook: string, direction: 'saddr' | 'daddr'): string =>
    `chain ${hook} { type filter hook ${hook} priority -400; ${addresses.map((each) => rule(direction, each)).join('; ')}; }`;
  const chains = [chain('prerouting', 'saddr'), ...(oneWay ? [] : [chain('output', 'daddr')])];
  return {
    begin: () => void onNode(node.name, 'nft', `table inet outage {\n${chains.join('\n')}\n}`),
    end: () => void onNode(node.name, 'nft', 'delete', 'table', 'inet', 'outage'),
  };
};

/** A site is alone; inside it everything goes on. */
export const partition = (layout: LabLayout, site: string): Outage => {
  const namespace = namespaceOf(routerName(site));
  const set = (state: 'up' | 'down'): void => void run(['ip', '-n', namespace, 'link', 'set', 'wan0', state]);
  const gateways = layout.nodes.filter((node) => node.site === site && node.external?.by === 'interface');
  const cables = gateways.map((node) => cable(layout, node.name, 'eth1'));
  return {
    begin: () => {
      set('down');
      cables.forEach((each) => each.begin());
    },
    end: () => {
      set('up');
      cables.forEach((each) => each.end());
    },
  };
};

const KINDS = ['sites', 'gatewaypools', 'sitegatewaypoolassignments', 'gatewaypoolpeerings', 'sitepeerings'] as const;

/** How often every link is probed, and how many lost probes make it unhealthy. */
export const setProbing = async (layout: LabLayout, intervalMs: number, detectMultiplier: number): Promise<void> => {
  const settings = { transmitInterval: intervalMs, receiveInterval: intervalMs, detectMultiplier };
  for (const kind of KINDS) {
    const names = (await kubectl(layout, ['get', kind, '-o', 'name'])).split('\n').filter(Boolean);
    const patch = JSON.stringify({ spec: { healthCheckSettings: settings } });
    for (const name of names) await kubectl(layout, ['patch', name, '--type=merge', '-p', patch]);
  }
};

/** Waits until every node sees all its peers as healthy. */
export const allHealthy = (layout: LabLayout, limitMs = 30_000): Promise<number> =>
  timeUntil(
    'every peer is healthy',
    () =>
      layout.nodes.every(({ name }) => {
        const { Healthy = 0, ...others } = peerStates(name);
        return Healthy > 0 && Object.values(others).every((count) => count === 0);
      }),
    limitMs,
  );

const SAMPLE_MS = 500;
/** The flows of the tests are some 200 kB/s; probes and the like are far below. */
const BUSY_BYTES = 20_000;

/** Bytes that came from, and went to, the site of each gateway in a moment. */
const traffic = async (gateways: readonly LabNode[], device: string): Promise<{ in: number; out: number }[]> => {
  const looked = () => gateways.map(({ name }) => linkCounters(inNode(name), device)[0]!.stats64);
  const before = looked();
  await delay(SAMPLE_MS);
  return looked().map(({ rx, tx }, index) => ({
    in: rx.bytes - before[index]!.rx.bytes,
    out: tx.bytes - before[index]!.tx.bytes,
  }));
};

/** Of the gateways the one that most of the traffic from within the site enters by. */
export const busiestGateway = async (gateways: readonly LabNode[], device = 'vxlan0'): Promise<LabNode> => {
  const entering = (await traffic(gateways, device)).map((bytes) => bytes.in);
  return gateways[entering.indexOf(Math.max(...entering))]!;
};

/** The one that most of the traffic into the site leaves by. */
export const deliveringGateway = async (gateways: readonly LabNode[], device = 'vxlan0'): Promise<LabNode> => {
  const delivered = (await traffic(gateways, device)).map((bytes) => bytes.out);
  return gateways[delivered.indexOf(Math.max(...delivered))]!;
};

/** Gateways that the flow passes in neither direction. */
export const idleGateways = async (gateways: readonly LabNode[], device = 'vxlan0'): Promise<LabNode[]> => {
  const passing = await traffic(gateways, device);
  return gateways.filter((_, index) => passing[index]!.in < BUSY_BYTES && passing[index]!.out < BUSY_BYTES);
};
