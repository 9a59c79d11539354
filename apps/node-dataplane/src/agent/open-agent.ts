import { setTimeout as delay } from 'node:timers/promises';
import type { HostPart, HostServices } from '@unbounded/host';
import { createRouteSocket } from '@unbounded/netlink';
import { createNftables, type Nftables } from '@unbounded/nftables';
import type { AgentConfig } from '../agent.config.ts';
import { openAttachment } from '../attachment/attachment.ts';
import { createBoundary } from '../kernel/boundary-additions.ts';
import { createDropMetrics } from '../kernel/drop-metrics.ts';
import { createSharedPeers } from '../kernel/overlay-peers.ts';
import { createSharedTraffic } from '../kernel/overlay-traffic.ts';
import type { SectionType } from '../section.port.ts';
import { createStateFaults } from '../state/state-faults.ts';
import { createStatusReporter, type StatusReporter } from '../status/status-reporter.ts';
import { createAnnotationsReader } from '../world/pod-metadata.ts';
import type { Reporter } from '../world/reporter.port.ts';
import { checkSections } from './check-sections.ts';
import { openKeptSections } from './kept-sections.ts';
import { nodeSection } from './node-section.ts';
import { type RunningSection, type Shared, startSection } from './open-section.ts';
import { watchKernel } from './kernel-watch.ts';
import { createProblemMetrics } from './problem-metrics.ts';
import { createReporting } from './reporting.ts';
import { removeUnlisted } from './unlisted.ts';
import { openWorld } from './world.ts';

/** The agent: its sections, each in a loop of its own, over one kernel, one world, one socket for pods and one report. */

/** So long pods wait for a section that is being opened; then its decision for that time holds. */
const OPEN_WITHIN_MS = 5000;
/** All of the end takes less than the grace period of the Pod (10 s). */
const STOP_WITHIN_MS = 4000;

const openShared = async (
  config: AgentConfig,
  services: HostServices,
  types: readonly SectionType[],
  { nft = createNftables() }: AgentOverrides,
): Promise<Shared & { readonly status: StatusReporter }> => {
  const { logger, metrics } = services;
  const names = types.map(({ name }) => name);
  const net = createRouteSocket();
  const faults = createStateFaults(services);
  const world = await openWorld(config, services);
  const hooks = types.flatMap(({ name, hook }) => (hook ? [{ ...hook, section: name }] : []));
  const annotationsOf = createAnnotationsReader(world.cluster);
  const status = createStatusReporter({
    cluster: world.cluster,
    ...{ service: config.statusService, namespace: config.relayNamespace, tokenFile: config.statusTokenFile },
    logger,
    metrics,
  });
  return {
    config,
    services,
    status,
    onStatus: () => status.look(),
    net,
    nft,
    newDrops: createDropMetrics(metrics, (reason, packets) => status.dropped(reason, packets)),
    boundary: createBoundary(),
    traffic: createSharedTraffic(),
    peers: createSharedPeers(),
    faults,
    kept: openKeptSections(config.stateDir, names, faults),
    world,
    attachment: await openAttachment(config, { net, faults, logger, metrics, hooks, annotationsOf }),
  };
};

interface Running {
  readonly isReady: boolean;
  stop(): Promise<void>;
}

/** Other parts than the agent's own: of tests. */
export interface AgentOverrides {
  readonly reporter?: Reporter;
  readonly nft?: Nftables;
}

const start = async (
  config: AgentConfig,
  services: HostServices,
  sectionTypes: readonly SectionType[],
  overrides: AgentOverrides,
): Promise<Running> => {
  const types = [...sectionTypes, nodeSection];
  checkSections(types);
  const shared = await openShared(config, services, types, overrides);
  const { net, nft, world, attachment, faults, status } = shared;
  const { logger } = services;
  await removeUnlisted({ net, nft }, types, (line) => logger.info(line)).catch((error: unknown) =>
    logger.error({ error: (error as Error).message }, 'cannot remove what former sections left; it stays'),
  );
  const measure = createProblemMetrics(services.metrics);
  const reporting = createReporting(types, {
    reporter: overrides.reporter ?? world.reporter,
    logger,
    onProblems(problems) {
      faults.measure(problems);
      measure(problems);
    },
    onReport: (report) => status.submit(report),
  });
  const sections: RunningSection[] = [];
  for (const type of types) sections.push(await startSection(type, shared, reporting));
  const watch = watchKernel(net, sections, logger);
  await Promise.race([
    Promise.all(sections.map(({ attempted }) => attempted)),
    delay(OPEN_WITHIN_MS, undefined, { ref: false }),
  ]);
  await attachment.listen();
  return {
    get isReady() {
      return sections.every(({ isReady }) => isReady);
    },
    stop: async () => {
      await attachment.stopListening(); // first: no pod is attached without its sections
      watch[Symbol.dispose]();
      await Promise.all([reporting.stop(), status.stop()]);
      await Promise.all(sections.map((section) => section.stop(STOP_WITHIN_MS)));
      await world.close();
      await attachment.close();
      await nft[Symbol.asyncDispose]();
      net.close();
    },
  };
};

/** The agent as a part of its host, and of tests. Stopping it leaves everything in the kernel as it is. */
export const openAgent = (
  config: AgentConfig,
  services: HostServices,
  sections: readonly SectionType[],
  overrides: AgentOverrides = {},
): HostPart => {
  let running: Running | undefined;
  return {
    name: 'agent',
    get isReady() {
      return running?.isReady ?? false;
    },
    start: async () => {
      running = await start(config, services, sections, overrides);
    },
    stop: async () => {
      await running?.stop();
    },
  };
};
