import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  CNI_CONF_FOLDER,
  CNI_SOCKET,
  KEEPER_UNITS,
  PIN_FOLDER,
  PORTS,
  STATE_FOLDER,
} from '@unbounded/config/ownership';
import { openPinnedLink } from '@unbounded/libbpf-ts';
import { createRouteSocket } from '@unbounded/netlink';
import { createLogger, createMetrics } from '@unbounded/telemetry';
import type { KernelPlan } from '../data-path/kernel-plan.ts';
import { generatePrivateKey } from '@unbounded/wireguard';
import { detachPinned, hasProgram, json, pinOf, run, VIA } from './attached-programs.testdata.ts';
import { cleanUp } from '../agent/cleanup.ts';
import type { PodAttachment } from '../attachment/pods.ts';
import { type PodsReport, tryPods } from './dataplane-pods.testdata.ts';
import { applyPlan, type Dataplane } from './dataplane.ts';
import { anchorHasProgram, DRIFTS, entryCount, FORWARD, groupCount, state } from './drifts.testdata.ts';
import { openEbpfPath } from '../data-path/ebpf/ebpf-path.ts';
import { openNetlinkPath } from '../data-path/netlink/netlink-path.ts';
import { readForwarding } from './forwarding.ts';
import { startHealth } from './health/health.ts';
import { groupMapPin } from '../data-path/ebpf/forwarding-maps.ts';
import { noPaths } from './paths/paths.testdata.ts';
import { createSysctls } from '../kernel/sysctls.ts';
import { withoutSettings, withoutWriting } from './refusals.testdata.ts';
import { planFor } from '../testdata.ts';
import { openFirewall } from './kernel/firewall.testdata.ts';
import { printReport } from '../printed-report.testdata.ts';

/**
 * Applies a plan in namespaces of its own (dataplane.kernel.spec.ts starts it in them), disturbs what is there in every
 * way, cleans up, and prints what it saw as JSON: the agent works on the namespace of its process.
 */

interface MapSizes {
  readonly entries: number;
  readonly groups: number;
}

/** vxlan0 as things fail that keep forged packets out. */
interface FailClosed {
  /** Before its source check, and when the first pass is over. */
  readonly atBoot: { readonly upBefore: boolean; readonly upAfter: boolean };
  /** What the source check can read from its first moment on, and when the first pass is over. */
  readonly checkedBy: readonly [MapSizes, MapSizes];
  /** While the program cannot be attached again, and afterwards. */
  readonly unattached: {
    readonly up: boolean;
    readonly problems: readonly string[];
    /** While its settings cannot be written either. */
    readonly upUnsettled: boolean;
    readonly upAgain: boolean;
  };
  /** While the table refuses a change: a device that is up, and one that would have to come up. */
  readonly outdated: { readonly up: boolean; readonly cameUp: boolean; readonly contained: boolean };
  /** While there is no table and none can be made, and afterwards. */
  readonly missing: { readonly up: boolean; readonly problems: readonly string[]; readonly upAgain: boolean };
}

export interface Report {
  readonly first: readonly string[];
  /** What the second pass wrote: netlink events, and lines of the log. */
  readonly secondWrote: readonly string[];
  readonly before: string;
  readonly applied: string;
  /** Drifts that a pass did not repair, with the state after it. */
  readonly unrepaired: Readonly<Record<string, string>>;
  /** Of the entries and routes that were taken away by hand: state before, without them, and after the repair; and all that is not in sync. */
  readonly forwarding: Readonly<Record<'before' | 'taken' | 'after', readonly string[]>>;
  /** What a successor finds before it has applied anything: as many entries and the same link as before, or not. */
  readonly taken: { readonly entries: boolean; readonly link: boolean; readonly program: boolean };
  readonly pods: PodsReport;
  readonly foreign: { readonly problems: readonly string[]; readonly linksSame: boolean };
  readonly cleaned: string;
  readonly closed: FailClosed;
  readonly foreignSurvives: boolean;
  /** Devices with a clsact filter of ours, before the netlink data path takes over, and then. */
  readonly filters: { readonly before: readonly string[]; readonly after: readonly string[] };
  /** The MAC by which pods know their gateway: before, with and after a pod whose port has a low one. */
  readonly bridgeMacs: readonly string[];
}

/** Pods of the node, as the registry of the CNI socket has them. */
let pods: readonly PodAttachment[] = [];

const open = () => {
  const log: string[] = [];
  const logger = createLogger({ name: 'test', destination: { write: (line) => void log.push(line) } });
  const net = createRouteSocket();
  const privateKey = generatePrivateKey();
  const dataplane: Dataplane = {
    net,
    ...openFirewall(logger),
    path: openEbpfPath(net, {
      objectPath: join(import.meta.dirname, '../../../../bpf/build/unbounded_encap.bpf.o'),
      pinFolder: PIN_FOLDER,
      indexFile: join(STATE_FOLDER, 'groups.json'),
      ...(VIA === undefined ? {} : { via: VIA }),
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
      unitsDir: '/run/unbounded/keeper/units',
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
  // The kernel finds a moment later that the device has a carrier: it is part of the state before.
  while (readFileSync('/sys/class/net/eth0/operstate', 'utf8').trim() !== 'up') run('sleep', '0.01');
  run('ip', 'route', 'add', 'default', 'via', '10.1.0.1');
  run('ip', 'route', 'add', '198.51.100.0/24', 'via', '10.1.0.1', 'proto', 'static');
  run('nft', 'add', 'table', 'inet', 'somebody');
  writeFileSync(FORWARD, '0');
};

/** Ends the agent's part and starts it anew, as an upgrade does. */
const restart = async (former: Dataplane): Promise<{ dataplane: Dataplane; taken: Report['taken'] }> => {
  const linkId = (): number | undefined => {
    const pin = pinOf('unbounded0');
    if (!existsSync(pin)) return undefined;
    using link = openPinnedLink(pin);
    return link.info.id;
  };
  const before = { entryCount: entryCount(), link: linkId() };
  await former.health.stop();
  former.path.close();
  const { dataplane } = open();
  return {
    dataplane,
    taken: {
      entries: before.entryCount > 0 && entryCount() === before.entryCount,
      link: VIA === 'clsact' || (before.link !== undefined && linkId() === before.link),
      program: anchorHasProgram(),
    },
  };
};

/** Reads what the node forwards by while a route and a map entry are missing. */
const readTaken = async (dataplane: Dataplane, plan: KernelPlan): Promise<Report['forwarding']> => {
  const { routes } = await applyPlan(dataplane, plan);
  const differing = async (): Promise<string[]> => {
    const { entries } = await readForwarding(dataplane, routes, { dataplane: 'ebpf', now: Date.now });
    return entries.flatMap(({ table, key, state, wanted, present }) =>
      state === 'InSync' ? [] : [`${table} ${key} ${state}: ${JSON.stringify([wanted, present])}`],
    );
  };
  const before = await differing();
  DRIFTS['a route is deleted']!();
  DRIFTS['a map entry is deleted']!();
  const taken = await differing();
  await applyPlan(dataplane, plan);
  return { before, taken, after: await differing() };
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

const isUp = (device: string): boolean =>
  (json('ip', '-j', 'link', 'show', device) as { flags: string[] }[])[0]!.flags.includes('UP');

const mapSizes = (): MapSizes => ({ entries: entryCount(), groups: groupCount() });

/** Notes whether the tunnel was up when its check was about to be attached, and what the check reads then. */
const watchGuard = (dataplane: Dataplane) => {
  const upBefore: boolean[] = [];
  const checkedBy: MapSizes[] = [];
  const guard: Dataplane['path']['guard'] = (plan, links) => {
    upBefore.push(isUp('vxlan0'));
    const guarded = dataplane.path.guard(plan, links);
    checkedBy.push(mapSizes());
    return guarded;
  };
  return { dataplane: { ...dataplane, path: { ...dataplane.path, guard } }, upBefore, checkedBy };
};

/** Somebody's filter or, of all things, a folder stands where the program or its pin would: it cannot be attached. */
const unattach = async (dataplane: Dataplane, plan: KernelPlan): Promise<FailClosed['unattached']> => {
  if (VIA === 'clsact') {
    run('tc', 'qdisc', 'del', 'dev', 'vxlan0', 'clsact');
    run('tc', 'qdisc', 'add', 'dev', 'vxlan0', 'clsact');
    run('tc', ...'filter add dev vxlan0 ingress prio 1 protocol ip bpf bytecode'.split(' '), '1,6 0 0 0,');
  } else {
    detachPinned('vxlan0');
    rmSync(pinOf('vxlan0'));
    mkdirSync(pinOf('vxlan0'));
  }
  const { problems } = await applyPlan(dataplane, plan);
  const up = isUp('vxlan0');
  run('ip', 'link', 'set', 'vxlan0', 'mtu', '1000', 'up');
  await applyPlan(withoutSettings(dataplane), plan);
  const upUnsettled = isUp('vxlan0');
  if (VIA === 'clsact') run('tc', 'qdisc', 'del', 'dev', 'vxlan0', 'clsact');
  else rmdirSync(pinOf('vxlan0'));
  await applyPlan(dataplane, plan);
  return {
    up,
    upUnsettled,
    problems: problems.map(({ reason }) => reason),
    upAgain: isUp('vxlan0') && hasProgram('vxlan0', 'ingress'),
  };
};

const failFirewall = async (
  dataplane: Dataplane,
  plan: KernelPlan,
): Promise<Pick<FailClosed, 'outdated' | 'missing'>> => {
  const refusing = withoutWriting(dataplane);
  run('nft', 'add', 'rule', 'inet', 'unbounded', 'postrouting', 'return');
  const { isContained } = await applyPlan(refusing, plan);
  const up = isUp('vxlan0');
  run('ip', 'link', 'set', 'vxlan0', 'down');
  await applyPlan(refusing, plan);
  const outdated = { up, cameUp: isUp('vxlan0'), contained: isContained };
  run('ip', 'link', 'set', 'vxlan0', 'up');
  run('nft', 'delete', 'table', 'inet', 'unbounded');
  const { problems } = await applyPlan(refusing, plan);
  const missing = { up: isUp('vxlan0'), problems: problems.map(({ reason }) => reason) };
  await applyPlan(dataplane, plan);
  return { outdated, missing: { ...missing, upAgain: isUp('vxlan0') } };
};

const folders = {
  cniConfDir: CNI_CONF_FOLDER,
  cniSocket: CNI_SOCKET,
  cniBinDir: '/opt/cni/bin',
  cniReservationsDir: '/var/lib/cni/networks/unbounded',
  unitsDir: KEEPER_UNITS,
  bpffsDir: PIN_FOLDER,
  stateDir: STATE_FOLDER,
};

const tryForeign = async (dataplane: Dataplane, plan: KernelPlan): Promise<Report['foreign']> => {
  run('ip', 'link', 'add', 'vxlan0', 'type', 'vxlan', 'id', '7', 'dstport', '4790', 'dev', 'eth0');
  run('ip', 'link', 'add', 'cbr0', 'type', 'bridge');
  for (const name of ['wg0', 'ipvlan0']) run('ip', 'link', 'add', name, 'type', 'bridge');
  const show = (): string =>
    run('ip', '-d', 'link', 'show', 'vxlan0') + run('ip', '-d', 'addr', 'show', 'cbr0').replaceAll(/\d+\.\d\d /g, '');
  const before = show();
  const { problems } = await applyPlan(dataplane, plan);
  return { problems: problems.map(({ message }) => message), linksSame: show() === before };
};

const DEVICES_WITH_PROGRAMS = [
  ['unbounded0', 'egress'],
  ['vxlan0', 'ingress'],
] as const;
const filtered = (): string[] =>
  DEVICES_WITH_PROGRAMS.flatMap(([device, direction]) =>
    run('tc', 'filter', 'show', 'dev', device, direction).includes('direct-action') ? [device] : [],
  );

/** The device stays, and what its check knows does not: nobody writes those maps from then on. */
const leaveToNetlink = async ({ net }: Dataplane): Promise<Report['filters']> => {
  const before = filtered();
  const path = openNetlinkPath(net, { indexFile: join(STATE_FOLDER, 'hops.json'), pinFolder: PIN_FOLDER });
  const links = new Map((await net.links.list()).map((link) => [link.name, link]));
  await path.prepare(planFor('w1', 'VXLAN', 'netlink'), links, new Set());
  await path.removeLeftovers();
  return { before, after: filtered() };
};

const main = async (): Promise<Report | Pick<Report, 'unrepaired'>> => {
  makeUnderlay();
  const before = state();
  const plan = planFor('w1', 'VXLAN');
  const { dataplane: former, log } = open();
  const watched = watchGuard(former);
  const first = (await applyPlan(watched.dataplane, plan)).problems.map(({ message }) => message);
  const atBoot = { upBefore: watched.upBefore[0]!, upAfter: isUp('vxlan0') };
  const checkedBy = [watched.checkedBy[0]!, mapSizes()] as const;
  await applyPlan(former, plan); // what the first one brought about (carrier, ...) is settled
  // The kernel tells of its own link-local addresses once more when it knows that nobody else has them (RFC 4862, 5.4).
  while (/ (eth0|wire) /.test(run('ip', '-6', '-o', 'addr', 'show', 'tentative'))) run('sleep', '0.01');
  const applied = state();
  const logged = log.length;
  const secondWrote = await eventsOf(() => applyPlan(former, plan));
  // Nobody answers echoes here: how soon that is found has nothing to do with the pass.
  secondWrote.push(...log.slice(logged).filter((line) => !line.includes('echoes through a gateway')));
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
  // All that follows takes for granted that everything is in place again.
  if (Object.keys(unrepaired).length > 0) return { unrepaired };
  const forwarding = await readTaken(dataplane, plan);
  const seenPods = await tryPods(dataplane, plan, (now) => {
    pods = now;
  });
  const unattached = await unattach(dataplane, plan);
  const closed = { atBoot, checkedBy, unattached, ...(await failFirewall(dataplane, plan)) };
  const filters = await leaveToNetlink(dataplane);
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
    forwarding,
    pods: seenPods,
    closed,
    foreign,
    cleaned,
    foreignSurvives,
    filters,
    bridgeMacs,
  };
};

await printReport(await main());
process.exit(0);
