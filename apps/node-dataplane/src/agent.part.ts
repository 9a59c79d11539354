import { existsSync } from 'node:fs';
import type { Server } from 'node:net';
import { basename, dirname, join } from 'node:path';
import type { ConfigOf } from '@unbounded/config';
import { LINK_ALIAS, PORTS, RELAY_STATE, RELAY_TALLIES, RELAY_UNIT, ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import type { HostPart, HostServices } from '@unbounded/host';
import { createEventRecorder, coreClients, openCluster } from '@unbounded/kube';
import { createRouteSocket, type Monitor, type RouteEvent, type RouteSocket } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import type { ProtectedAddress } from '@unbounded/topology';
import { type Agent, createAgent } from './agent.ts';
import type { agentOptions } from './agent.config.ts';
import type { Dataplane } from './dataplane.ts';
import { installCniPlugin } from './cni/install.ts';
import { openPlanGate, type PlanGate } from './cni/plan-gate.ts';
import { createPodRegistry, type PodRegistry } from './cni/pods.ts';
import { startCniServer } from './cni/server.ts';
import { openEbpfPath } from './data-path/ebpf/ebpf-path.ts';
import { startHealth } from './health/health.ts';
import type { NodeKeys } from './health/probe-keys.ts';
import { createFirewallMetrics } from './kernel/firewall-metrics.ts';
import { groupMapPin } from './data-path/ebpf/forwarding-maps.ts';
import { checkPinFolder } from './data-path/ebpf/pin-folder.ts';
import { openNetlinkPath } from './data-path/netlink/netlink-path.ts';
import { isKeptPlan } from './kept-plan-file.ts';
import { createNodePlanner } from './node-planner.ts';
import { findDefaultGateways } from './kernel/protected-addresses.ts';
import { isString, stateFile } from './state/state-file.ts';
import { createStateFaults, type StateFaults } from './state/state-faults.ts';
import { type KeyRing, openKeyRing } from './keys/key-ring.ts';
import { createKeyRotation, ROTATION_TIMES, type RotationTimes } from './keys/rotation.ts';
import { createSysctls } from './kernel/sysctls.ts';
import { createOverlayMetrics } from './data-path/ebpf/overlay-metrics.ts';
import { watchTables } from './kernel/table-watch.ts';
import { createUnderlayWatch, findProtocols, findUnderlay } from './kernel/underlay.ts';
import { managedRelaySource } from './relay/managed-objects.ts';
import { createPaths } from './paths/paths.ts';
import { createRelayMetrics } from './relay/metrics.ts';
import { createRelayProxies, type RelayProxies } from './relay/relay-proxies.ts';
import type { ManagedRelaySource } from './relay/relay-services.ts';
import { createSourceGuard, type SourceGuard } from './source-guard/source-guard.ts';
import { type ReconcileLoop, startReconcileLoop } from './reconcile-loop.ts';
import { type ApiServer, createApiAddresses } from './world/api-addresses.ts';
import { createClusterReporter } from './world/cluster-reporter.ts';
import { createReportLoop, type ReportLoop } from './world/report-loop.ts';
import { createClusterSource } from './world/cluster-source.ts';
import { createFileSource } from './world/file-source.ts';
import type { Reporter, WorldSource } from './world/source.port.ts';

export type AgentConfig = ConfigOf<typeof agentOptions>;

const QUIET_MS = 200;
const RETRY_MS = 1000;

/** Whether a change in the kernel may be one that we must repair. Our own additions come back as events too; they change nothing. */
const concernsUs = (event: RouteEvent): boolean => {
  if (event.subject === 'route') return event.change === 'deleted' && event.value.protocol === ROUTE_PROTOCOL;
  if (event.subject === 'link') return event.change === 'deleted' || event.value.alias === LINK_ALIAS;
  return event.change === 'deleted';
};

interface World {
  readonly source: WorldSource;
  readonly reporter: Reporter;
  readonly managedRelay?: ManagedRelaySource;
  /** Absent: the objects come from a folder. */
  readonly apiServer?: ApiServer;
  close(): void;
}

/** Where objects come from and reports go to: the cluster, or a folder. */
const openWorld = (config: AgentConfig, { logger, metrics }: HostServices): World => {
  if (config.objects !== undefined) {
    const source = createFileSource(config.objects, config.nodeName, (error) =>
      logger.error({ error: error.message }, 'cannot read the objects; the last ones stand'),
    );
    return { source, reporter: { report: async () => undefined }, close: () => undefined };
  }
  const cluster = openCluster({ kubeconfig: config.kubeconfig, metrics });
  const source = createClusterSource(cluster, config.nodeName, logger);
  const events = createEventRecorder({
    events: coreClients(cluster).events,
    controller: 'unbounded/node-dataplane',
    logger,
    metrics,
  });
  const { transport } = cluster;
  const apiServer: ApiServer = {
    host: transport.server.hostname,
    peers: () => transport.peerAddresses,
  };
  const reporter = createClusterReporter({ cluster, nodeName: config.nodeName, node: () => source.node(), events });
  const managedRelay = managedRelaySource(cluster, {
    namespace: config.relayNamespace,
    nodeName: config.nodeName,
    gateways: () => source.snapshot()?.objects.gatewayPools.flatMap(({ status }) => status?.nodes ?? []) ?? [],
    logger,
  });
  return { source, reporter, managedRelay, apiServer, close: () => cluster.close() };
};

interface Running {
  readonly loop: ReconcileLoop;
  readonly agent: Agent;
  stop(): Promise<void>;
}

interface DataplaneOptions {
  readonly net: RouteSocket;
  readonly ring: KeyRing;
  readonly relay: RelayProxies;
  readonly pods: PodRegistry;
  readonly faults: StateFaults;
  /** The health of a path, or the path itself, is another than before. */
  readonly onChange: () => void;
}

const probeKeys = ({ current, next, previous }: KeyRing): NodeKeys => ({
  current: current.privateKey,
  ...(next && { next: next.privateKey }),
  ...(previous && { previous: previous.privateKey }),
});

const openDataplane = (
  config: AgentConfig,
  { net, ring, relay, pods, faults, onChange }: DataplaneOptions,
  { logger, metrics }: HostServices,
): Dataplane => {
  const { pinFolder, stateFolder } = config;
  const isEbpf = config.dataplane === 'ebpf';
  const indexFile = join(stateFolder, 'groups.json');
  return {
    net,
    nft: createNftables(),
    path: isEbpf
      ? openEbpfPath(net, {
          objectPath: config.bpfObject,
          pinFolder,
          indexFile,
          faults,
          overlayMetrics: createOverlayMetrics(metrics),
        })
      : openNetlinkPath(net, { indexFile, pinFolder, faults }),
    // After the maps: it opens that of the groups by its pin.
    health: startHealth({
      keys: probeKeys(ring),
      port: PORTS.health,
      groups: isEbpf ? { mapPin: groupMapPin(pinFolder) } : 'routes',
      stateFile: join(stateFolder, 'health.json'),
      logger,
      metrics,
      onChange,
    }),
    paths: createPaths({ relays: relay, keyOf: (generation) => ring.of(generation), logger, metrics, onChange }),
    sysctls: createSysctls(join(stateFolder, 'sysctls.json'), faults),
    wireGuard: { keyOf: (generation) => ring.of(generation), unitsFolder: config.unitsFolder, faults },
    relayWays: (plan) => relay.waysOf(plan),
    pods: () => pods.list(),
    firewallMetrics: createFirewallMetrics(metrics),
    logger,
  };
};

const MS_PER_HOUR = 3_600_000;
const CLOCKS = { now: Date.now, elapsed: () => performance.now() };

/** Its files are beside the units, where the keeper looks for them. */
const openRelay = (
  { unitsFolder, stateFolder }: AgentConfig,
  ring: KeyRing,
  { managed, faults }: { readonly managed: ManagedRelaySource | undefined; readonly faults: StateFaults },
  { logger, metrics }: HostServices,
): RelayProxies => {
  const folder = dirname(unitsFolder);
  const relays = createRelayProxies({
    unitFile: join(folder, basename(RELAY_UNIT)),
    stateFile: join(folder, basename(RELAY_STATE)),
    stateFolder,
    keyOf: (generation) => ring.of(generation),
    managed,
    faults,
    logger,
  });
  const talliesFile = join(folder, basename(RELAY_TALLIES));
  createRelayMetrics(metrics, { talliesFile, relays: () => relays.relays() });
  return relays;
};

const API_REFRESH_MS = 60_000;
const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every(isString);

/** What is asked before every plan; the API server's addresses are looked up beside it. */
const protectAddresses = (
  { stateFolder }: AgentConfig,
  { apiServer }: World,
  { net, faults, logger }: { net: RouteSocket; faults: StateFaults; logger: HostServices['logger'] },
): (() => Promise<ProtectedAddress[]>) => {
  const file = stateFile(join(stateFolder, 'api-addresses.json'), isTexts, faults);
  const api = apiServer && createApiAddresses(apiServer, file, logger);
  let refreshedMs = -Infinity;
  return async () => {
    if (api && performance.now() - refreshedMs > API_REFRESH_MS) {
      refreshedMs = performance.now();
      void api.refresh();
    }
    return [...(api?.list() ?? []), ...(await findDefaultGateways(net))];
  };
};

interface AgentOptions {
  readonly dataplane: Dataplane;
  readonly ring: KeyRing;
  readonly world: World;
  readonly relay: RelayProxies;
  readonly faults: StateFaults;
  readonly reports: ReportLoop;
  readonly times: RotationTimes;
  readonly guard: SourceGuard;
  readonly planGate: PlanGate;
}

const openAgent = async (
  config: AgentConfig,
  { dataplane, ring, world, relay, faults, reports, times, guard, planGate }: AgentOptions,
  services: HostServices,
): Promise<Agent> => {
  const { logger, metrics } = services;
  const { nodeName, keyMaxAgeHours } = config;
  const protocols = await findProtocols(dataplane.net);
  const onKeys = (): void => dataplane.health.setKeys(probeKeys(ring));
  const maxAgeMs = keyMaxAgeHours * MS_PER_HOUR;
  return createAgent({
    planner: createNodePlanner({
      nodeName,
      protocols,
      dataplaneKind: config.dataplane,
      source: world.source,
      planFile: stateFile(join(config.stateFolder, 'plan.json'), isKeptPlan, faults),
      logger,
    }),
    dataplane,
    rotation: createKeyRotation({ ring, nodeName, maxAgeMs, times, ...CLOCKS, metrics, logger, onKeys }),
    relay,
    guard,
    reports,
    cniFolders: { configurations: config.cniConfFolder, volatile: dirname(config.cniSocket) },
    faults,
    listenerProblems: services.listenerProblems ?? (() => []),
    planGate,
    protocols,
    underlay: createUnderlayWatch((internalIps) => findUnderlay(dataplane.net, internalIps)),
    protectedAddresses: protectAddresses(config, world, { net: dataplane.net, faults, logger }),
    logger,
  });
};

const start = async (config: AgentConfig, services: HostServices, times: RotationTimes): Promise<Running> => {
  checkPinFolder(config.pinFolder);
  const { logger } = services;
  const net = createRouteSocket();
  const faults = createStateFaults(services);
  const ring = openKeyRing(config.keyFolder, {
    ...times,
    ...CLOCKS,
    onUnwritable: (error) => logger.error({ err: error }, 'cannot write the state of the keys'),
  });
  const world = openWorld(config, services);
  const relay = openRelay(config, ring, { managed: world.managedRelay, faults }, services);
  const onChange = (): void => loop.trigger();
  const pods = createPodRegistry(join(config.stateFolder, 'pods.json'), faults);
  const dataplane = openDataplane(config, { net, ring, relay, pods, faults, onChange }, services);
  installCniPlugin(config.cniPlugin, config.cniBinFolder, faults);
  pods.keepOnly(({ netns }) => existsSync(netns));
  const guardNft = createNftables();
  const guard = createSourceGuard({ net, nft: guardNft, pods, logger, metrics: services.metrics });
  await guard.ensure(); // pods that are there already, before a plan is; a pass says what is wrong
  const planGate = openPlanGate(join(dirname(config.cniSocket), 'plan-applied'), logger);
  const cni: Server = await startCniServer(config.cniSocket, { pods: guard, gate: planGate, logger });
  const reports = createReportLoop({ reporter: world.reporter, logger });
  const parts = { dataplane, ring, world, relay, faults, reports, times, guard, planGate };
  const agent = await openAgent(config, parts, services);
  const loop = startReconcileLoop({
    pass: () => agent.pass(),
    quietMs: QUIET_MS,
    retryMs: RETRY_MS,
    onError: (error) => logger.error({ err: error }, 'a pass failed; what the kernel holds stays'),
  });
  world.source.onChange(() => loop.trigger());
  relay.onChange(() => {
    dataplane.paths.refresh();
    loop.trigger();
  });
  const monitor: Monitor = net.monitor(['link', 'address', 'route'], {
    onEvent: (event) => {
      if (concernsUs(event)) loop.trigger();
    },
    onResync: () => loop.trigger(),
  });
  const tableWatch = watchTables(dataplane.nft, { onChange: () => loop.trigger(), logger });
  return {
    loop,
    agent,
    stop: async () => {
      monitor.close();
      tableWatch[Symbol.dispose]();
      await loop.stop();
      await reports.stop();
      relay.stop();
      await world.source.stop();
      world.close();
      await new Promise((resolve) => cni.close(resolve));
      await dataplane.health.stop();
      await dataplane.paths.stop();
      dataplane.path.close();
      await dataplane.nft[Symbol.asyncDispose]();
      guardNft.close();
      net.close();
    },
  };
};

/** The agent as a part of its host. Stopping it leaves everything in the kernel as it is. */
export const createAgentPart = (
  config: AgentConfig,
  services: HostServices,
  times: RotationTimes = ROTATION_TIMES,
): HostPart => {
  let running: Running | undefined;
  return {
    name: 'agent',
    get isReady() {
      return running?.agent.isReady ?? false;
    },
    start: async () => {
      running = await start(config, services, times);
    },
    stop: async () => {
      await running?.stop();
    },
  };
};
