import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  CNI_CONF_FOLDER,
  KEEPER_UNITS,
  LINK_ALIAS,
  PIN_FOLDER,
  PORTS,
  ROUTE_PROTOCOL,
  STATE_FOLDER,
} from '@unbounded/config/ownership';
import { openPinnedLink } from '@unbounded/libbpf-ts';
import { createRouteSocket } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import { createLogger, createMetrics } from '@unbounded/telemetry';
import type { NodePlan } from '@unbounded/topology';
import { generatePrivateKey } from '@unbounded/wireguard';
import { cleanUp } from './cleanup.ts';
import type { PodAttachment } from './cni/pods.ts';
import { applyPlan, type Dataplane } from './dataplane.ts';
import { openEbpfPath } from './ebpf-path.ts';
import { startHealth } from './health/health.ts';
import { groupMapPin } from './kernel/forwarding-maps.ts';
import { noPaths } from './paths/paths.testdata.ts';
import { createSysctls } from './kernel/sysctls.ts';
import { planFor } from './testdata.ts';

/**
 * Applies a plan in namespaces of its own (dataplane.kernel.spec.ts starts it in them), disturbs what is there in every
 * way, cleans up, and prints what it saw as JSON: the agent works on the namespace of its process.
 */

const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
const json = (...argv: string[]): unknown => JSON.parse(run(...argv) || '[]');

const FORWARD = '/proc/sys/net/ipv4/ip_forward';
const map = (name: string): string => join(PIN_FOLDER, 'maps', name);

const anchorHasProgram = (): boolean => {
  const pin = join(PIN_FOLDER, 'links/unbounded0');
  const link = (json('ip', '-j', 'link', 'show', 'unbounded0') as { ifindex: number }[])[0];
  if (!existsSync(pin)) return false;
  using pinned = openPinnedLink(pin);
  return pinned.info.ifindex === link?.ifindex;
};

/** Everything of ours as text that is the same for the same state; indexes of devices are none of it. */
const state = (): string => {
  type Shown = { ifname: string; ifalias?: string; mtu: number; address: string; linkinfo?: { info_kind?: string } };
  const links = (json('ip', '-d', '-j', 'link') as Shown[]).filter(({ ifalias }) => ifalias === LINK_ALIAS);
  const tables = run('nft', 'list', 'ruleset');
  return [
    ...links
      .map(({ ifname, mtu, address, linkinfo }) => {
        const isGiven = ifname === 'vxlan0'; // the MAC of the others is the kernel's choice
        return `${ifname} ${linkinfo?.info_kind} ${mtu} ${isGiven ? address : ''}`;
      })
      .sort(),
    ...run('ip', '-br', '-4', 'addr')
      .split('\n')
      .map((line) => line.replace(/@\S+/, ''))
      .sort(),
    ...run('ip', 'route', 'show', 'proto', String(ROUTE_PROTOCOL)).split('\n').sort(),
    tables,
    `forwarding ${readFileSync(FORWARD, 'utf8').trim()}`,
    existsSync(map('unbounded_endpoints_v4'))
      ? String((json('bpftool', '-j', 'map', 'dump', 'pinned', map('unbounded_endpoints_v4')) as unknown[]).length)
      : 'no map',
    links.some(({ ifname }) => ifname === 'unbounded0') ? `program ${anchorHasProgram()}` : 'no anchor',
  ].join('\n');
};

/** Each way in which somebody may change what is ours. */
const DRIFTS: Readonly<Record<string, () => unknown>> = {
  'a route is deleted': () => run('ip', 'route', 'del', '100.66.0.0/16'),
  'a route of ours leads elsewhere': () =>
    run('ip', 'route', 'replace', '100.66.0.0/16', 'via', '10.1.0.1', 'proto', String(ROUTE_PROTOCOL)),
  'an address is deleted': () => run('ip', 'addr', 'del', '100.65.30.1/32', 'dev', 'vxlan0'),
  'an address is added': () => run('ip', 'addr', 'add', '192.0.2.9/32', 'dev', 'vxlan0'),
  'an MTU is changed': () => run('ip', 'link', 'set', 'unbounded0', 'mtu', '1000'),
  'a MAC is changed': () => run('ip', 'link', 'set', 'vxlan0', 'address', '02:00:00:00:00:01'),
  'a device is down': () => run('ip', 'link', 'set', 'unbounded0', 'down'),
  'an agent died before a device had its alias': () => run('ip', 'link', 'set', 'dev', 'vxlan0', 'alias', ''),
  'a tunnel device is deleted': () => run('ip', 'link', 'del', 'vxlan0'),
  'the anchor is deleted': () => run('ip', 'link', 'del', 'unbounded0'),
  'the table is deleted': () => run('nft', 'delete', 'table', 'inet', 'unbounded'),
  'a rule is added to the table': () => run('nft', 'add', 'rule', 'inet', 'unbounded', 'postrouting', 'drop'),
  'a map entry is deleted': () =>
    run(
      'bpftool',
      'map',
      'delete',
      'pinned',
      map('unbounded_endpoints_v4'),
      'key',
      '24',
      '0',
      '0',
      '0',
      '100',
      '65',
      '31',
      '0',
    ),
  'forwarding is off': () => writeFileSync(FORWARD, '0'),
};

export interface Report {
  readonly first: readonly string[];
  /** What the second pass wrote: netlink events, and lines of the log. */
  readonly secondWrote: readonly string[];
  readonly before: string;
  readonly applied: string;
  /** Drifts that a pass did not repair, with the state after it. */
  readonly unrepaired: Readonly<Record<string, string>>;
  /** What a successor finds before it has applied anything: as many entries and the same link as before, or not. */
  readonly taken: { readonly entries: boolean; readonly link: boolean; readonly program: boolean };
  readonly pods: {
    readonly atFirst: boolean;
    readonly steps: Readonly<Record<string, { readonly reasons: readonly string[]; readonly isReached: boolean }>>;
    /** Of a bridge without ports, when the plan has none. */
    readonly unused: { readonly reasons: readonly string[]; readonly isBridgeGone: boolean };
  };
  readonly foreign: { readonly problems: readonly string[]; readonly linksSame: boolean };
  readonly cleaned: string;
  readonly foreignSurvives: boolean;
  /** The MAC by which pods know their gateway: before, with and after a pod whose port has a low one. */
  readonly bridgeMacs: readonly string[];
}

/** Pods of the node, as the registry of the CNI socket has them. */
let pods: PodAttachment[] = [];

const open = () => {
  const log: string[] = [];
  const logger = createLogger({ name: 'test', destination: { write: (line) => void log.push(line) } });
  const net = createRouteSocket();
  const privateKey = generatePrivateKey();
  const dataplane: Dataplane = {
    net,
    nft: createNftables(),
    path: openEbpfPath(net, {
      objectPath: join(import.meta.dirname, '../../../bpf/build/unbounded_encap.bpf.o'),
      pinFolder: PIN_FOLDER,
      indexFile: join(STATE_FOLDER, 'groups.json'),
    }),
    health: startHealth({
      keys: { current: privateKey },
      port: PORTS.health,
      groups: { mapPin: groupMapPin(PIN_FOLDER) },
      stateFile: join(STATE_FOLDER, 'health.json'),
      logger,
      metrics: createMetrics(),
      onChange: () => undefined,
    }),
    paths: noPaths(),
    sysctls: createSysctls(join(STATE_FOLDER, 'sysctls.json')),
    wireGuard: {
      keyOf: () => ({ privateKey, file: '/etc/wireguard/server.priv' }),
      unitsFolder: '/run/unbounded/keeper/units',
    },
    relayWays: () => [],
    pods: () => pods,
    logger,
  };
  return { dataplane, log };
};

/** Netlink events during `act`; the last one is a route of the caller's own, which marks the end. */
const eventsOf = async (act: () => Promise<unknown>): Promise<string[]> => {
  await using watcher = createRouteSocket();
  const events: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const monitor = watcher.monitor(['link', 'address', 'route'], {
    onEvent: (event) => {
      if (event.subject === 'route' && event.value.dst === '192.0.2.77/32') resolve();
      else events.push(JSON.stringify(event));
    },
    onResync: () => undefined,
  });
  await act();
  run('ip', 'route', 'add', 'blackhole', '192.0.2.77/32');
  await promise;
  monitor.close();
  run('ip', 'route', 'del', 'blackhole', '192.0.2.77/32');
  return events;
};

const makeUnderlay = (): void => {
  run('ip', 'link', 'set', 'lo', 'up');
  run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'wire');
  run('ip', 'addr', 'add', '10.1.0.30/24', 'dev', 'eth0');
  for (const name of ['wire', 'eth0']) run('ip', 'link', 'set', name, 'up');
  run('ip', 'route', 'add', 'default', 'via', '10.1.0.1');
  run('ip', 'route', 'add', '198.51.100.0/24', 'via', '10.1.0.1', 'proto', 'static');
  run('nft', 'add', 'table', 'inet', 'somebody');
  writeFileSync(FORWARD, '0');
};

/** Ends the agent's part and starts it anew, as an upgrade does. */
const restart = async (former: Dataplane): Promise<{ dataplane: Dataplane; taken: Report['taken'] }> => {
  const entries = (): number =>
    (json('bpftool', '-j', 'map', 'dump', 'pinned', map('unbounded_endpoints_v4')) as unknown[]).length;
  const linkId = (): number | undefined => {
    const pin = join(PIN_FOLDER, 'links/unbounded0');
    if (!existsSync(pin)) return undefined;
    using link = openPinnedLink(pin);
    return link.info.id;
  };
  const before = { entries: entries(), link: linkId() };
  await former.health.stop();
  former.path.close();
  const { dataplane } = open();
  return {
    dataplane,
    taken: {
      entries: before.entries > 0 && entries() === before.entries,
      link: before.link !== undefined && linkId() === before.link,
      program: anchorHasProgram(),
    },
  };
};

const bridgeMacsAsPodsComeAndGo = (): string[] => {
  const mac = (): string => readFileSync('/sys/class/net/cbr0/address', 'utf8').trim();
  const macs = [mac()];
  run('ip', 'link', 'add', 'veth1', 'address', '02:00:00:00:00:01', 'type', 'veth', 'peer', 'name', 'pod1');
  run('ip', 'link', 'set', 'veth1', 'master', 'cbr0', 'up');
  macs.push(mac());
  run('ip', 'link', 'del', 'veth1');
  return [...macs, mac()];
};

const folders = {
  cniConfFolder: CNI_CONF_FOLDER,
  cniBinFolder: '/opt/cni/bin',
  unitsFolder: KEEPER_UNITS,
  pinFolder: PIN_FOLDER,
  stateFolder: STATE_FOLDER,
};

const tryForeign = async (dataplane: Dataplane, plan: NodePlan): Promise<Report['foreign']> => {
  run('ip', 'link', 'add', 'vxlan0', 'type', 'vxlan', 'id', '7', 'dstport', '4790', 'dev', 'eth0');
  run('ip', 'link', 'add', 'cbr0', 'type', 'bridge');
  for (const name of ['wg0', 'ipvlan0']) run('ip', 'link', 'add', name, 'type', 'bridge');
  const show = (): string =>
    run('ip', '-d', 'link', 'show', 'vxlan0') + run('ip', '-d', 'addr', 'show', 'cbr0').replaceAll(/\d+\.\d\d /g, '');
  const before = show();
  const { problems } = await applyPlan(dataplane, plan);
  return { problems: problems.map(({ message }) => message), linksSame: show() === before };
};

const POD = '100.65.30.7';

/** A pod behind the bridge, in a network namespace of its own, as the bridge plugin makes it. */
const makePod = (): void => {
  run('ip', 'netns', 'add', 'pod');
  run('ip', 'link', 'add', 'veth7', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', 'pod');
  run('ip', 'link', 'set', 'veth7', 'master', 'cbr0', 'up');
  run('ip', '-n', 'pod', 'addr', 'add', `${POD}/24`, 'dev', 'eth0');
  run('ip', '-n', 'pod', 'link', 'set', 'eth0', 'up');
  const known = { namespace: 'default', name: 'web', uid: 'u', containerId: 'c', interface: 'eth0' };
  pods = [{ ...known, netns: '/run/netns/pod', hostVeth: 'veth7', addresses: [`${POD}/24`] }];
};

const isReached = (): boolean => {
  try {
    run('ping', '-c', '1', '-W', '2', '-i', '0.2', POD);
    return true;
  } catch {
    return false;
  }
};

/** What befalls the bridge of a pod, and the state after one pass. */
const tryPods = async (dataplane: Dataplane, plan: NodePlan): Promise<Report['pods']> => {
  const reasonsAfter = async (applied: NodePlan): Promise<string[]> =>
    (await applyPlan(dataplane, applied)).problems.map(({ reason }) => reason);
  makePod();
  const atFirst = isReached();
  const steps: Record<string, { reasons: string[]; isReached: boolean }> = {};
  const step = async (name: string, applied: NodePlan): Promise<void> => {
    steps[name] = { reasons: await reasonsAfter(applied), isReached: isReached() };
  };
  run('ip', 'link', 'del', 'cbr0');
  await step('the bridge was deleted', plan);
  run('ip', 'link', 'set', 'veth7', 'nomaster');
  await step('the port was detached', plan);
  await step('manageCniPlugin is false', { ...plan, manageCni: false });
  await step('manageCniPlugin is true again', plan);
  run('ip', 'link', 'add', 'other0', 'type', 'bridge');
  run('ip', 'link', 'set', 'veth7', 'master', 'other0');
  await step('the port is at another bridge', plan);
  run('ip', 'link', 'del', 'other0');
  run('ip', 'link', 'del', 'veth7');
  await step('the interface is gone', plan);
  run('ip', 'netns', 'del', 'pod');
  await step('the pod is gone', plan);
  const { reasons } = { reasons: await reasonsAfter({ ...plan, manageCni: false }) };
  const isBridgeGone = !run('ip', '-br', 'link').includes('cbr0');
  await applyPlan(dataplane, plan);
  pods = [];
  return { atFirst, steps, unused: { reasons, isBridgeGone } };
};

const main = async (): Promise<Report> => {
  makeUnderlay();
  const before = state();
  const plan = planFor('w1', 'VXLAN');
  const { dataplane: former, log } = open();
  const first = (await applyPlan(former, plan)).problems.map(({ message }) => message);
  await applyPlan(former, plan); // what the first one brought about (carrier, ...) is settled
  const applied = state();
  const logged = log.length;
  const secondWrote = await eventsOf(() => applyPlan(former, plan));
  secondWrote.push(...log.slice(logged));
  const bridgeMacs = bridgeMacsAsPodsComeAndGo();
  const { dataplane, taken } = await restart(former);
  const unrepaired: Record<string, string> = {};
  for (const [name, disturb] of Object.entries(DRIFTS)) {
    try {
      disturb();
    } catch (error) {
      unrepaired[name] = String(error); // what it disturbs was not there: something before was not repaired
      continue;
    }
    const disturbed = state();
    await applyPlan(dataplane, plan);
    if (state() !== applied || disturbed === applied) unrepaired[name] = state();
  }
  const seenPods = await tryPods(dataplane, plan);
  const say = (): void => undefined;
  await cleanUp(folders, say);
  const cleaned = state();
  await dataplane.health.stop();
  dataplane.path.close();
  const again = open();
  const foreign = await tryForeign(again.dataplane, plan);
  await cleanUp(folders, say);
  const foreignSurvives = ['vxlan0', 'cbr0', 'wg0', 'ipvlan0'].every((name) =>
    run('ip', '-br', 'link').includes(`${name} `),
  );
  return {
    first,
    secondWrote,
    before,
    applied,
    unrepaired,
    taken,
    pods: seenPods,
    foreign,
    cleaned,
    foreignSurvives,
    bridgeMacs,
  };
};

process.stdout.write(`\n${JSON.stringify(await main())}\n`);
process.exit(0);
