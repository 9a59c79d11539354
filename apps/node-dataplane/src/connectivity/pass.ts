import type { ConnectivityStatus } from '@unbounded/status';
import type { Logger, Metrics } from '@unbounded/telemetry';
import type { NodePlan, ProtectedAddress } from '@unbounded/topology';
import type { DataPath } from '../data-path/port.ts';
import type { KernelPlan } from '../data-path/kernel-plan.ts';
import { DEVICES } from '../data-path/devices.ts';
import { type CniConfigFolders, ensureCniConfig } from '../attachment/config.ts';
import type { Attachment } from '../attachment/attachment.ts';
import type { SharedPeers } from '../kernel/overlay-peers.ts';
import { applyPlan, type ApplyOutcome, type Dataplane } from './dataplane.ts';
import type { Advanced, KeyRotation } from './keys/rotation.ts';
import type { StateFaults } from '../state/state-faults.ts';
import type { Underlay, UnderlayWatch } from './kernel/underlay.ts';
import type { SwiftRepairs } from './kernel/swift-repairs.ts';
import type { ForwardingWatch } from './health/forwarding-watch.ts';
import { summarize } from './paths/moves.ts';
import { readWireGuard } from './kernel/wireguard.ts';
import type { NodePlanner } from './node-planner.ts';
import type { OwnKeys } from './measured.ts';
import type { RelayProxies } from './relay/relay-proxies.ts';
import type { NodeCondition, Section, SectionReport, SectionStatus } from '../section.port.ts';
import { createProblemLog } from '../world/problem-log.ts';
import { readForwarding } from './forwarding.ts';
import type { GatewayReporter } from './gateway-reporter.ts';
import { connectivityReport } from './report.ts';
import { connectivityStatus } from './status.ts';
import { watchSessions } from './wireguard-metrics.ts';

/** Observe, plan, diff, apply, report: a pass of connectivity. */

type Problems = readonly { readonly reason: string; readonly message: string }[];

export interface ConnectivityParts {
  readonly planner: NodePlanner;
  readonly dataplane: Dataplane;
  /** Told who is in the overlay. */
  readonly peers: Pick<SharedPeers, 'set' | 'heard'>;
  readonly rotation: KeyRotation;
  readonly relay: RelayProxies;
  readonly attachment: Pick<Attachment, 'gate' | 'releaseOfFormerBoot'>;
  readonly cniFolders: CniConfigFolders;
  readonly faults: StateFaults;
  /** Ports of health and metrics that cannot be had. */
  readonly listenerProblems: () => Problems;
  readonly repairs: Pick<SwiftRepairs, 'takeEvents' | 'problems'>;
  readonly forwarding: ForwardingWatch;
  readonly protocols: readonly string[];
  readonly dataplaneKind: ConnectivityStatus['dataplane'];
  readonly underlay: UnderlayWatch;
  /** Addresses that the node must reach without the overlay, whatever the objects list. */
  readonly protectedAddresses: () => Promise<readonly ProtectedAddress[]>;
  /** The wall clock, milliseconds: for times that people are shown. */
  readonly now: () => number;
  /** Undefined: there is no API server. */
  readonly gateway: GatewayReporter | undefined;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** Milliseconds: drift is found and repaired within this; something that will be ready soon is looked at again sooner. */
const REPAIR_EVERY_MS = 5000;
const SOON_MS = 200;
const WIREGUARD_OVERHEAD_BYTES = 80;

const ownKeys = ({ ring: { current, next } }: KeyRotation): OwnKeys => ({
  publicKey: current.publicKey,
  keyGeneration: current.generation,
  nextPublicKey: next?.publicKey,
});

/** Plans, with the node's keys and with what their lanes were seen to be. */
const createRotatingPlanner = ({ planner, dataplane, rotation, protectedAddresses }: ConnectivityParts) => {
  let isFirst = true;
  const measure = async (underlay: Underlay): Promise<void> => {
    const { established } = rotation;
    const pathMtuBytes = dataplane.health.pathMtuBytes();
    const known = await protectedAddresses();
    planner.replan({ underlay, pathMtuBytes, keys: ownKeys(rotation), established, protectedAddresses: known });
  };
  return {
    /** Without knowing the underlay the last plan stands. */
    async replan(underlay: Underlay | undefined, mayBegin: boolean): Promise<void> {
      // What an earlier process was sending by a lane of a new key goes on doing so.
      if (isFirst && planner.plan) {
        const links = await dataplane.net.links.list();
        rotation.observe(planner.plan, await readWireGuard(planner.plan.wireGuard, links));
      }
      isFirst = false;
      if (!underlay) return;
      await measure(underlay);
      if (mayBegin && planner.node && rotation.begin(planner.node.rotateKey)) await measure(underlay);
    },
    applied(plan: NodePlan, { wireGuard }: ApplyOutcome): Advanced {
      rotation.observe(plan, wireGuard);
      return rotation.advance({
        plan,
        isCurrent: planner.isCurrent,
        isWhole: plan.wireGuard.every(({ name }) => wireGuard.has(name)),
        peers: dataplane.health.states(),
      });
    },
  };
};

/** A plan is rendered once: it stays the same object while nothing changed. */
const createRenderer = (path: DataPath): ((plan: NodePlan) => KernelPlan) => {
  let known: { readonly plan: NodePlan; readonly rendered: KernelPlan } | undefined;
  return (plan) => {
    if (known?.plan !== plan) known = { plan, rendered: path.render(plan) };
    return known.rendered;
  };
};

const statusOf = (
  { planner: { plan }, dataplane: { health, paths }, dataplaneKind }: ConnectivityParts,
  wireGuard: ApplyOutcome['wireGuard'],
): SectionStatus => {
  if (!plan) return {};
  const observed = { peers: health.states(), groups: health.groups(), paths: paths.states(), wireGuard };
  return { connectivity: connectivityStatus(plan, { dataplane: dataplaneKind, ...observed }) };
};

const sizeOf = (plan: NodePlan, { routes }: KernelPlan): Record<string, number> => ({
  ...{ wireguard_interfaces: plan.wireGuard.length, tunnels: plan.tunnels.length, blocks: plan.blocks.length },
  wireguard_peers: plan.wireGuard.reduce((sum, { peers }) => sum + peers.length, 0),
  ...{ nexthop_groups: plan.groups.length, probed_peers: plan.probes.length, routes: routes.length },
});

/** Of the last pass. */
type Applied = Pick<ApplyOutcome, 'wireGuard' | 'routes'>;

/** What is read of the node when somebody asks for it. */
const readersOf = (
  parts: ConnectivityParts,
  applied: () => Applied,
): Required<Pick<SectionReport, 'status' | 'forwarding'>> => {
  const about = { dataplane: parts.dataplaneKind, now: parts.now };
  return {
    status: () => statusOf(parts, applied().wireGuard),
    forwarding: () => readForwarding(parts.dataplane, applied().routes, about),
  };
};

const stopParts = async ({ relay, forwarding, dataplane }: ConnectivityParts): Promise<void> => {
  relay.stop();
  forwarding.stop();
  await dataplane.health.stop();
  await dataplane.paths.stop();
  dataplane.path.close();
};

export const createConnectivity = (parts: ConnectivityParts): Section => {
  const { planner, dataplane, rotation, attachment, faults, gateway, logger } = parts;
  const rotating = createRotatingPlanner(parts);
  const render = createRenderer(dataplane.path);
  let isReady = false;
  let applied: Applied = { wireGuard: new Map(), routes: [] };
  const sessions = watchSessions(parts.metrics, () => applied.wireGuard, parts.now);

  const tellProblems = createProblemLog(logger);

  const report = (underlay: Underlay | undefined, problems: Problems, forwarding?: NodeCondition): SectionReport => {
    tellProblems(problems);
    const reported = connectivityReport(
      {
        ...ownKeys(rotation),
        tunnelMtuBytes: underlay && underlay.mtuBytes - WIREGUARD_OVERHEAD_BYTES,
        protocols: parts.protocols,
        routesNodes: planner.plan?.routesNodes ?? false,
        networkReady: isReady,
        problems,
        paths: summarize(dataplane.paths.states()),
        moves: dataplane.paths.takeMoves(),
        repairs: [...parts.repairs.takeEvents(), ...parts.forwarding.takeEvents()],
        forwarding,
        routes: planner.advertised,
      },
      gateway && ((routes, signal) => gateway.report(routes, { signal })),
    );
    return { ...reported, ...readersOf(parts, () => applied) };
  };

  return {
    get isReady() {
      return isReady;
    },
    async pass() {
      const { underlay, problems: unknown } = await parts.underlay.look(planner.internalIps);
      await rotating.replan(underlay, isReady);
      const { plan } = planner;
      const fromNode = (): Problems => [...unknown, ...parts.listenerProblems(), ...parts.repairs.problems()];
      if (!plan) return { nextPassMs: REPAIR_EVERY_MS, report: report(underlay, [...planner.problems, ...fromNode()]) };
      const rendered = render(plan);
      const outcome = await applyPlan(dataplane, rendered);
      applied = outcome;
      parts.peers.set(planner.peers);
      if (dataplane.health.states().some(({ state }) => state === 'Healthy')) parts.peers.heard();
      if (outcome.isContained) attachment.gate.open();
      // Once the firewall leads to the relays: a connection stays with what it was led to first.
      const relayed = parts.relay.apply(plan);
      const advanced = rotating.applied(plan, outcome);
      const again = outcome.again || (!isReady && outcome.isUndecided);
      // Without a bridge of ours no pod may be plugged in: a foreign one of that name would get our addresses.
      const takesPods = outcome.devices.has(DEVICES.bridge) && (isReady || !outcome.isUndecided);
      if (takesPods && plan.manageCni) await attachment.releaseOfFormerBoot();
      const cni = takesPods || !plan.manageCni ? ensureCniConfig(parts.cniFolders, plan, faults) : [];
      const forwarding = parts.forwarding.look(rendered, dataplane.health.states());
      const others = [...forwarding.problems, ...relayed, ...cni, ...advanced.problems, ...fromNode()];
      const problems = [...outcome.problems, ...others];
      if (!again && !isReady) {
        isReady = true;
        const { site, role, blocks } = plan;
        logger.info({ site, role, blocks: blocks.length, wireGuard: plan.wireGuard.length }, 'plan applied');
      }
      const nextPassMs = again
        ? SOON_MS
        : Math.min(REPAIR_EVERY_MS, planner.nextStepMs ?? REPAIR_EVERY_MS, advanced.nextPassMs ?? REPAIR_EVERY_MS);
      return { nextPassMs, report: report(underlay, problems, forwarding.condition), planned: sizeOf(plan, rendered) };
    },
    async stop() {
      sessions[Symbol.dispose]();
      await stopParts(parts);
    },
  };
};
