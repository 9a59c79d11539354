import { NFT_GUARD_TABLE } from '@unbounded/config/ownership';
import type { HostPart, HostServices } from '@unbounded/host';
import { createRouteSocket, type RouteEvent, type RouteSocket } from '@unbounded/netlink';
import { createNftables, type Nftables } from '@unbounded/nftables';
import type { AgentConfig } from '../agent.config.ts';
import { type Attachment, openAttachment } from '../attachment/attachment.ts';
import { checkPinFolder } from '../data-path/ebpf/pin-folder.ts';
import { createDropMetrics, type TableDrops } from '../kernel/drop-metrics.ts';
import { watchTable } from '../kernel/table-watch.ts';
import type { SectionContext, SectionType } from '../section.port.ts';
import { createStateFaults, type StateFaults } from '../state/state-faults.ts';
import { checkSections } from './check-sections.ts';
import type { Reporter } from '../world/reporter.port.ts';
import type { WorldSource } from '../world/source.port.ts';
import { type KeptSections, openKeptSections } from './kept-sections.ts';
import { createReporting, type Reporting } from './reporting.ts';
import { createSectionTables } from './section-tables.ts';
import { runSection, type SectionRunner } from './section-runner.ts';
import { removeUnlisted } from './unlisted.ts';
import { openWorld, type World } from './world.ts';

/** The agent: its sections, each in a loop of its own, over one kernel, one world, one file of kept plans and one report. */

interface Shared {
  readonly config: AgentConfig;
  readonly services: HostServices;
  readonly net: RouteSocket;
  readonly nft: Nftables;
  readonly newDrops: () => TableDrops;
  readonly faults: StateFaults;
  readonly kept: KeptSections;
  readonly world: World;
  readonly attachment: Attachment;
}

const openShared = async (
  config: AgentConfig,
  services: HostServices,
  sections: readonly string[],
): Promise<Shared> => {
  const { logger, metrics } = services;
  checkPinFolder(config.pinFolder);
  const net = createRouteSocket();
  const nft = createNftables();
  const faults = createStateFaults(services);
  return {
    config,
    services,
    net,
    nft,
    newDrops: createDropMetrics(metrics),
    faults,
    kept: openKeptSections(config.stateFolder, sections, faults),
    world: openWorld(config, services),
    attachment: await openAttachment(config, { net, faults, logger, metrics }),
  };
};

/** What a section has of the shared things, and what it takes of them until it stops. */
interface Opened {
  readonly context: SectionContext;
  readonly concerns: ((event: RouteEvent) => boolean)[];
  /** Gives back what it took. */
  end(): Promise<void>;
}

const openContext = (type: SectionType, shared: Shared, trigger: () => void): Opened => {
  const { name } = type;
  const { config, services, net, nft, newDrops, faults, kept, world, attachment } = shared;
  const { logger, metrics } = services;
  const tables = createSectionTables(type, { nft, newDrops, onChange: trigger, logger });
  const concerns: ((event: RouteEvent) => boolean)[] = [];
  const taken: (() => unknown)[] = [() => tables[Symbol.dispose]()];
  const context: SectionContext = {
    nodeName: config.nodeName,
    net,
    nft,
    table: (family) => tables.of(family),
    kept: kept.of(name),
    openInputs: (kinds) => {
      const source: WorldSource<typeof kinds> = world.inputs(kinds);
      source.onChange(trigger);
      taken.push(() => source.stop());
      return source;
    },
    cluster: world.cluster,
    attachment,
    addHook: (hook) => void taken.push(attachment.addHook({ ...hook, section: name })),
    trigger,
    onKernelChange: (concern) => void concerns.push(concern),
    faults,
    logger,
    metrics,
  };
  const end = async (): Promise<void> => {
    for (const give of taken.splice(0).toReversed()) await give();
  };
  return { context, concerns, end };
};

interface Running {
  readonly isReady: boolean;
  stop(): Promise<void>;
}

const startSection = async (
  type: SectionType,
  shared: Shared,
  reporting: Reporting,
): Promise<{ readonly runner: SectionRunner; readonly opened: Opened }> => {
  let runner: SectionRunner | undefined;
  const opened = openContext(type, shared, () => runner?.trigger());
  const { logger } = shared.services;
  const section = type.isEssential ? { section: await type.open(opened.context) } : {};
  const own = reporting.of(type.name, () => runner?.trigger());
  runner = runSection(type, { context: opened.context, ...section, reporting: own, logger });
  return { runner, opened };
};

/** Other parts than the agent's own: of tests. */
export interface AgentOverrides {
  readonly reporter?: Reporter;
}

const start = async (
  config: AgentConfig,
  services: HostServices,
  types: readonly SectionType[],
  overrides: AgentOverrides,
): Promise<Running> => {
  checkSections(types);
  const names = types.map(({ name }) => name);
  const shared = await openShared(config, services, names);
  const { net, nft, world, attachment } = shared;
  const { logger } = services;
  await removeUnlisted({ net, nft }, types, (line) => logger.info(line)).catch((error: unknown) =>
    logger.error({ error: (error as Error).message }, 'cannot remove what former sections left; it stays'),
  );
  const reporting = createReporting(types, { reporter: overrides.reporter ?? world.reporter, logger });
  const sections: Awaited<ReturnType<typeof startSection>>[] = [];
  for (const type of types) sections.push(await startSection(type, shared, reporting));
  await attachment.listen();
  const triggerAll = (): void => {
    for (const { runner } of sections) runner.trigger();
  };
  const monitor = net.monitor(['link', 'address', 'route'], {
    onEvent: (event) => {
      for (const { runner, opened } of sections) if (opened.concerns.some((is) => is(event))) runner.trigger();
    },
    onResync: triggerAll,
  });
  // Whoever repairs it.
  const guardWatch = watchTable(nft, { family: 'bridge', name: NFT_GUARD_TABLE }, { onChange: triggerAll, logger });
  return {
    get isReady() {
      return sections.every(({ runner }) => runner.isReady);
    },
    stop: async () => {
      monitor.close();
      guardWatch[Symbol.dispose]();
      await reporting.stop();
      for (const { runner, opened } of sections.toReversed()) {
        await runner.stop();
        await opened.end();
      }
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
