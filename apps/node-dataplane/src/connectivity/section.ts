import { basename, dirname, join } from 'node:path';
import {
  CONNECTIVITY,
  KEEPER_PROCESSES,
  LINK_ALIAS,
  METRICS_PORTS,
  PORTS,
  RELAY_STATE,
  RELAY_TALLIES,
  RELAY_UNIT,
  ROUTE_PROTOCOL,
} from '@unbounded/config/ownership';
import { topologyKinds } from '@unbounded/crds';
import type { HostServices } from '@unbounded/host';
import type { Cluster } from '@unbounded/kube';
import type { RouteEvent } from '@unbounded/netlink';
import type { ProtectedAddress } from '@unbounded/topology';
import type { AgentConfig } from '../agent.config.ts';
import { checkPinFolder } from '../bpf/pin-folder.ts';
import { openDataPath } from '../data-path/open.ts';
import type { Dataplane } from './dataplane.ts';
import { createForwardingWatch } from './health/forwarding-watch.ts';
import { startHealth } from './health/health.ts';
import type { NodeKeys } from './health/probe-keys.ts';
import { CONNECTIVITY_CHAINS } from '../kernel/base-chains.ts';
import { ensureDeviceSettings } from './kernel/device-settings.ts';
import { findDefaultGateways } from './kernel/protected-addresses.ts';
import { createSysctls, type Sysctls } from '../kernel/sysctls.ts';
import { createSwiftRepairs, type SwiftRepairs } from './kernel/swift-repairs.ts';
import { createUnderlayWatch, findProtocols, findUnderlay } from './kernel/underlay.ts';
import { type KeyRing, openKeyRing } from './keys/key-ring.ts';
import { createKeyRotation, ROTATION_TIMES, type RotationTimes } from './keys/rotation.ts';
import { watchKeeper } from './keeper-metrics.ts';
import { createNodePlanner } from './node-planner.ts';
import { createPaths } from './paths/paths.ts';
import { managedRelaySource } from './relay/managed-objects.ts';
import { createRelayMetrics } from './relay/metrics.ts';
import { createRelayProxies, type RelayProxies } from './relay/relay-proxies.ts';
import type { ManagedRelaySource } from './relay/relay-services.ts';
import type { SectionContext, SectionType } from '../section.port.ts';
import { isString, stateFile } from '../state/state-file.ts';
import { type ApiServer, createApiAddresses } from '../world/api-addresses.ts';
import type { WorldSource } from '../world/source.port.ts';
import { createCleanUp } from './cleanup.ts';
import { createGatewayReporter } from './gateway-reporter.ts';
import { createConnectivity } from './pass.ts';

/** Connectivity: pods and nodes of all sites reach one another. Links, keys, probes, relays, routes. */

/**
 * Whether a change in the kernel may be one that we must repair. Our own additions come back as events too; they change nothing. What is
 * repaired at once is not asked for here.
 */
const concernsUs = (event: RouteEvent): boolean => {
  if (event.subject === 'route' || event.subject === 'rule' || event.subject === 'netconf') return false;
  if (event.subject === 'link') return event.change === 'deleted' || event.value.alias === LINK_ALIAS;
  return event.change === 'deleted';
};

const probeKeys = ({ current, next, previous }: KeyRing): NodeKeys => ({
  current: current.privateKey,
  ...(next && { next: next.privateKey }),
  ...(previous && { previous: previous.privateKey }),
});

const CLOCKS = { now: Date.now, elapsed: () => performance.now() };
const MS_PER_HOUR = 3_600_000;

/** Its files are beside the units, where the keeper looks for them. */
const openRelay = (
  { unitsDir, stateDir }: AgentConfig,
  { ring, managed }: { readonly ring: KeyRing; readonly managed: ManagedRelaySource | undefined },
  { faults, logger, metrics }: SectionContext,
): RelayProxies => {
  const folder = dirname(unitsDir);
  const talliesFile = join(folder, basename(RELAY_TALLIES));
  const relays = createRelayProxies({
    unitFile: join(folder, basename(RELAY_UNIT)),
    stateFile: join(folder, basename(RELAY_STATE)),
    talliesFile,
    stateDir,
    keyOf: (generation) => ring.of(generation),
    managed,
    faults,
    logger,
  });
  createRelayMetrics(metrics, { talliesFile, relays: () => relays.relays() });
  return relays;
};

const openManagedRelay = (
  { relayNamespace: namespace, nodeName }: AgentConfig,
  cluster: Cluster,
  { source, logger }: { readonly source: WorldSource; readonly logger: SectionContext['logger'] },
): ManagedRelaySource => {
  const gateways = () => source.snapshot()?.objects.gatewayPools.flatMap(({ status }) => status?.nodes ?? []) ?? [];
  return managedRelaySource(cluster, { namespace, nodeName, gateways, logger });
};

interface DataplaneParts {
  readonly ring: KeyRing;
  readonly relay: RelayProxies;
  readonly sysctls: Sysctls;
  readonly repairs: SwiftRepairs;
}

const openDataplane = (
  config: AgentConfig,
  { ring, relay, sysctls, repairs }: DataplaneParts,
  context: SectionContext,
): Dataplane => {
  const { stateDir, unitsDir } = config;
  const { net, nft, table, boundary, traffic, attachment, faults, logger, metrics, trigger: onChange } = context;
  const path = openDataPath(config, context);
  return {
    ...{ net, nft, path, logger },
    table: table('inet'),
    arpTable: table('arp'),
    additions: () => boundary.all(),
    onTraffic: traffic.set,
    metricsPorts: [...new Set([...METRICS_PORTS, config.healthPort])].filter((port) => port > 0), // 0: a free one, for tests
    // After the maps: it opens that of the groups by its pin.
    health: startHealth({
      keys: probeKeys(ring),
      port: PORTS.health,
      groups: path.groups,
      stateFile: join(stateDir, 'health.json'),
      logger,
      metrics,
      onChange,
      onGroups: context.statusChanged,
    }),
    paths: createPaths({
      nonceFile: join(stateDir, 'path-nonce'),
      relays: relay,
      keyOf: (generation) => ring.of(generation),
      now: CLOCKS.now,
      logger,
      metrics,
      onChange,
    }),
    sysctls,
    onWanted: (wanted) => repairs.expect(wanted),
    wireGuard: { keyOf: (generation) => ring.of(generation), unitsDir, faults },
    relayWays: (plan) => relay.waysOf(plan),
    pods: () => attachment.bridgePods.list(),
  };
};

const API_REFRESH_MS = 60_000;
const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every(isString);

const apiServerOf = ({ transport }: Cluster): ApiServer => ({
  host: transport.server.hostname,
  peers: () => transport.peerAddresses,
});

/** What is asked before every plan; the API server's addresses are looked up beside it. */
const protectAddresses = (
  { stateDir }: AgentConfig,
  { cluster, net, faults, logger }: SectionContext,
): (() => Promise<ProtectedAddress[]>) => {
  const file = stateFile(join(stateDir, 'api-addresses.json'), isTexts, faults);
  const api = cluster && createApiAddresses(apiServerOf(cluster), file, logger);
  let refreshedMs = -Infinity;
  return async () => {
    if (api && performance.now() - refreshedMs > API_REFRESH_MS) {
      refreshedMs = performance.now();
      void api.refresh();
    }
    return [...(api?.list() ?? []), ...(await findDefaultGateways(net))];
  };
};

const openRing = ({ keyDir }: AgentConfig, times: RotationTimes, { logger }: SectionContext): KeyRing =>
  openKeyRing(keyDir, {
    ...times,
    ...CLOCKS,
    onUnwritable: (error) => logger.error({ err: error }, 'cannot write the state of the keys'),
  });

const createRestorationCounter = (metrics: SectionContext['metrics']) => {
  const restored = metrics.counter({
    name: 'unbounded_agent_restorations_total',
    help: 'Routes, rules and kernel settings that others changed and that were put back at once.',
    labels: ['what'],
  });
  for (const what of ['route', 'rule', 'setting']) restored.inc({ what }, 0);
  return restored;
};

/** @param listenerProblems ports of health and metrics that cannot be had */
export const connectivity = (
  config: AgentConfig,
  { listenerProblems = () => [] }: Pick<HostServices, 'listenerProblems'> = {},
  times: RotationTimes = ROTATION_TIMES,
): SectionType => ({
  name: CONNECTIVITY,
  routeProtocol: ROUTE_PROTOCOL,
  baseChains: Object.values(CONNECTIVITY_CHAINS),
  isEssential: true,
  async open(context) {
    const { nodeName, net, cluster, attachment, faults, logger, metrics } = context;
    checkPinFolder(config.bpffsDir);
    const ring = openRing(config, times, context);
    const source = context.openInputs(topologyKinds);
    const managed = cluster && openManagedRelay(config, cluster, { source, logger });
    const relay = openRelay(config, { ring, managed }, context);
    watchKeeper(metrics, join(dirname(config.unitsDir), basename(KEEPER_PROCESSES)));
    const sysctls = createSysctls(join(config.stateDir, 'sysctls.json'), faults);
    const restored = createRestorationCounter(metrics);
    const repairs = createSwiftRepairs({
      net,
      onRestored: (what) => restored.inc({ what }),
      forward: (family) => sysctls.again(family),
      settle: ensureDeviceSettings,
      logger,
    });
    const dataplane = openDataplane(config, { ring, relay, sysctls, repairs }, context);
    const protocols = await findProtocols(net);
    const onKeys = (): void => dataplane.health.setKeys(probeKeys(ring));
    const maxAgeMs = config.keyMaxAgeHours * MS_PER_HOUR;
    relay.onChange(() => {
      dataplane.paths.refresh();
      context.trigger();
    });
    context.onKernelChange((event) => repairs.onEvent(event) || concernsUs(event));
    context.boundary.onChange(context.trigger);
    return createConnectivity({
      planner: createNodePlanner({
        nodeName,
        protocols,
        source,
        kept: context.kept,
        logger,
      }),
      dataplane,
      peers: context.peers,
      rotation: createKeyRotation({ ring, nodeName, maxAgeMs, times, ...CLOCKS, metrics, logger, onKeys }),
      relay,
      attachment,
      cniFolders: { configurations: config.cniConfDir, volatile: dirname(config.cniSocket) },
      faults,
      listenerProblems,
      repairs,
      forwarding: createForwardingWatch({ nft: context.nft, metrics, logger, onFound: context.trigger }),
      protocols,
      dataplaneKind: config.dataplane,
      now: CLOCKS.now,
      underlay: createUnderlayWatch((internalIps) => findUnderlay(net, internalIps)),
      protectedAddresses: protectAddresses(config, context),
      gateway: cluster && createGatewayReporter(cluster, nodeName),
      metrics,
      logger,
    });
  },
  cleanUp: createCleanUp(config),
});
