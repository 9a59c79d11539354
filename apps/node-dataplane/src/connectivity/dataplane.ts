import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { unitNames } from '@unbounded/keeper-protocol';
import type { Link, RouteSocket, RouteSpec } from '@unbounded/netlink';
import type { Logger } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import { DEVICES } from '../data-path/devices.ts';
import type { KernelPlan } from '../data-path/kernel-plan.ts';
import type { PodAttachment } from '../attachment/pods.ts';
import type { DataPath } from '../data-path/port.ts';
import type { Health } from './health/health.ts';
import { healthProblems } from './health/problems.ts';
import { isUndecided } from './health/undecided.ts';
import { bridgeInUse, ensurePorts } from '../kernel/bridge-ports.ts';
import { ensureDevices, staleDevices } from './kernel/devices.ts';
import { removeDevice } from '../kernel/links.ts';
import { type DeviceSpec, planDevices } from './kernel/devices.plan.ts';
import { planBridgeRoutes } from './kernel/bridge-routes.plan.ts';
import { planEchoRoutes } from './kernel/echo-routes.plan.ts';
import { ensureArpTable, ensureFirewall, type FirewallParts } from './kernel/firewall.ts';
import { removeUnit } from './kernel/keeper-units.ts';
import { findNetwork } from './kernel/own-network.ts';
import { withLocalAddresses } from './kernel/own-addresses.ts';
import { ensureRoutes } from '../kernel/routes.ts';
import { ensureRules, hasTransitRules, rulesOf } from './kernel/rules.ts';
import type { Wanted } from './kernel/swift-repairs.ts';
import { advertisementDevices } from './kernel/router-advertisements.ts';
import type { Sysctls } from '../kernel/sysctls.ts';
import { settleTunnels } from './kernel/tunnel-gate.ts';
import type { Paths } from './paths/paths.ts';
import { type EndpointOf, ensureWireGuard, type WireGuardContext, type WireGuardOutcome } from './kernel/wireguard.ts';

/** Makes the kernel hold a plan. Everything is read, compared and only then written: at rest a pass writes nothing. */

export interface Dataplane extends FirewallParts {
  readonly net: RouteSocket;
  readonly logger: Logger;
  readonly path: DataPath;
  readonly health: Health;
  readonly paths: Paths;
  readonly sysctls: Sysctls;
  readonly wireGuard: WireGuardContext;
  /** The pods of the node, as the CNI plugin registered them. */
  readonly pods: () => readonly PodAttachment[];
  /** Told what a pass wants before it removes anything. Absent: nobody asks. */
  readonly onWanted?: (wanted: Wanted) => void;
}

export interface ApplyOutcome {
  readonly problems: readonly Problem[];
  /** Something is not ready yet that will be soon: apply again shortly. */
  readonly again: boolean;
  /** A group may still lead to a gateway that was dead from the start. */
  readonly isUndecided: boolean;
  readonly wireGuard: WireGuardOutcome['states'];
  /** Names of the devices that are there and ours. */
  readonly devices: ReadonlySet<string>;
  /** Those that the kernel is to have, of ours. */
  readonly routes: readonly RouteSpec[];
  /** Firewall, groups and routes are as planned: nothing for the overlay leaves outside of it. */
  readonly isContained: boolean;
}

const removeStaleDevices = async (dataplane: Dataplane, wanted: ReadonlySet<string>): Promise<Problem[]> => {
  const { net, wireGuard, path, logger } = dataplane;
  const problems: Problem[] = [];
  for (const device of unitNames(wireGuard.unitsDir))
    if (!wanted.has(device)) removeUnit(wireGuard.unitsDir, device, wireGuard.faults);
  for (const link of await staleDevices(net, wanted)) {
    const ports = link.kind?.kind === 'bridge' ? await net.links.list({ master: link.index }) : [];
    if (ports.length > 0) {
      problems.push(bridgeInUse(link.name, ports.length));
      continue;
    }
    logger.info({ device: link.name }, 'removing an unused device');
    // Only then: what is still there goes on being checked.
    await removeDevice(net, link);
    path.detach(link.name);
  }
  return problems;
};

/** A bridge that was made anew has none of the pods' ports. */
const ensurePods = async (
  { net, pods, logger }: Dataplane,
  links: ReadonlyMap<string, Link>,
): Promise<readonly Problem[]> => {
  const bridge = links.get(DEVICES.bridge);
  if (!bridge) return [];
  const { attached, problems } = await ensurePorts(net, bridge, pods());
  if (attached.length > 0) logger.warn({ pods: attached }, 'reattached pods to the bridge');
  return problems;
};

interface Devices {
  readonly links: ReadonlyMap<string, Link>;
  readonly down: ReadonlySet<string>;
}

/** Groups into the kernel, then what points at them. Undefined: the groups could not be written. */
const ensureForwarding = async (
  { path, health, logger }: Dataplane,
  plan: KernelPlan,
  { links, down }: Devices,
): Promise<Problem[] | undefined> => {
  const { probes, echoes, role, servedSites, mtuBytes } = plan;
  const echo = links.get(DEVICES.echo);
  const echoing = echoes && echo ? { echoes, echoDevice: { name: echo.name, index: echo.index } } : {};
  const { groups, problems } = await path.prepare(plan, links, down);
  try {
    const found = await health.apply({
      probes,
      ...echoing,
      groups,
      mtuBytes,
      ...(role === 'gateway' ? { servedSites } : {}),
    });
    return [...problems, ...found, ...(await path.apply())];
  } catch (error) {
    logger.error({ err: error }, 'cannot write next-hop groups; keeping current kernel state');
    return undefined;
  }
};

const withoutTransit = (plan: KernelPlan): KernelPlan => {
  const { transitRoutes: _, ...rest } = plan;
  return rest;
};

const byIndex = (specs: readonly DeviceSpec[], links: ReadonlyMap<string, Link>): Wanted['devices'] =>
  new Map(specs.flatMap((spec) => (links.has(spec.name) ? [[links.get(spec.name)!.index, spec] as const] : [])));

const familiesOf = ({ podCidrs, locators }: KernelPlan): { readonly v4: boolean; readonly v6: boolean } => ({
  v4: podCidrs.some((block) => !block.includes(':')),
  v6: locators?.own !== undefined || podCidrs.some((block) => block.includes(':')),
});

/**
 * One pass. The order is make before break: devices, tunnels, map entries and routes come into being first; what is no
 * longer wanted goes last, and only when everything before it worked.
 */
export const applyPlan = async (dataplane: Dataplane, wanted: KernelPlan): Promise<ApplyOutcome> => {
  const { net, path, health, paths, sysctls, wireGuard: context } = dataplane;
  const addresses = await net.addresses.list();
  const { plan, problems: addressProblems } = withLocalAddresses(wanted, addresses);
  const network = await findNetwork(net, addresses, plan);
  const sysctlProblems = await sysctls.ensure(familiesOf(plan), () => advertisementDevices(net));
  const specs = planDevices(plan);
  const devices = await ensureDevices(net, specs);
  const links: ReadonlyMap<string, Link> = devices.links;
  // Before WireGuard: peers may send by a new interface as soon as it has its key.
  const podProblems = await ensurePods(dataplane, links);
  // Before the table: it may still have the source checks of the other data path, and has them no more once it is as planned.
  const guard = path.guard(plan, new Map([...links, ...devices.unsettled]));
  // New before old: packets get the mark of those in transit only when the routes for them stand.
  const isTransitReady = await hasTransitRules(net, plan);
  const firewall = await ensureFirewall(dataplane, isTransitReady ? plan : withoutTransit(plan), {
    ...devices,
    network,
  });
  const arpProblems = await ensureArpTable(dataplane, plan, { ...devices, network });
  const tunnels = await settleTunnels(net, { specs, ...devices }, firewall.state, guard);
  const endpointOf: EndpointOf = (device, peer) => paths.endpointOf(device, peer);
  const wireGuard = await ensureWireGuard(plan.wireGuard, links, { ...context, endpointOf });
  const pathProblems = await paths.apply(plan, links);
  const forwarded = await ensureForwarding(dataplane, plan, { links, down: tunnels.down });
  const echoRoutes = planEchoRoutes(plan, links);
  const wantedRoutes = [...path.routes(plan, links), ...planBridgeRoutes(plan, links), ...echoRoutes];
  const routes = await ensureRoutes(net, wantedRoutes, ROUTE_PROTOCOL, (route) => echoRoutes.includes(route));
  dataplane.onWanted?.({ routes: routes.standing, rules: rulesOf(plan), devices: byIndex(specs, links) });
  const problems = [
    ...plan.problems,
    ...sysctlProblems,
    ...addressProblems,
    ...devices.problems,
    ...podProblems,
    ...wireGuard.problems,
    ...pathProblems,
    ...(forwarded ?? []),
    ...healthProblems(health.states()),
    ...firewall.problems,
    ...arpProblems,
    ...guard.problems,
    ...tunnels.problems,
    ...routes.problems,
    ...routes.ofPeers,
    ...routes.foreign,
  ];
  let isTransitNew = false;
  if (forwarded && routes.problems.length === 0) {
    const ruleProblems = await ensureRules(net, plan); // the routes stand: packets may be sent to them
    problems.push(...ruleProblems);
    isTransitNew = !isTransitReady && ruleProblems.length === 0;
    await path.removeStale();
    await routes.removeStale();
    await health.removeStale();
    await path.removeLeftovers();
    problems.push(...(await removeStaleDevices(dataplane, new Set(specs.map(({ name }) => name)))));
  }
  const again = !forwarded || wireGuard.waiting.length > 0 || isTransitNew;
  return {
    problems,
    again,
    isUndecided: isUndecided(plan.groups, health.states()),
    wireGuard: wireGuard.states,
    devices: new Set(links.keys()),
    routes: wantedRoutes,
    isContained: firewall.state === 'inSync' && forwarded !== undefined && routes.problems.length === 0,
  };
};
