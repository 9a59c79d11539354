import type { HostServices } from '@unbounded/host';
import type { RouteEvent, RouteSocket } from '@unbounded/netlink';
import type { Nftables } from '@unbounded/nftables';
import type { AgentConfig } from '../agent.config.ts';
import type { Attachment } from '../attachment/attachment.ts';
import { withDeadline } from '../deadline.ts';
import type { Boundary } from '../kernel/boundary-additions.ts';
import type { TableDrops } from '../kernel/drop-metrics.ts';
import { createKernelWrites } from '../kernel/kernel-writes.ts';
import type { SharedPeers } from '../kernel/overlay-peers.ts';
import type { SharedTraffic } from '../kernel/overlay-traffic.ts';
import type { Section, SectionContext, SectionReport, SectionType } from '../section.port.ts';
import type { StateFaults } from '../state/state-faults.ts';
import type { WorldSource } from '../world/source.port.ts';
import type { KeptSections } from './kept-sections.ts';
import type { Reporting } from './reporting.ts';
import { runSection, sectionFailed } from './section-runner.ts';
import { createSectionTables } from './section-tables.ts';
import type { World } from './world.ts';

/** One section over what all share: what it takes it gives back when it cannot be opened, and when it stops. */

export interface Shared {
  readonly config: AgentConfig;
  readonly services: HostServices;
  readonly net: RouteSocket;
  readonly nft: Nftables;
  readonly newDrops: () => TableDrops;
  readonly boundary: Boundary;
  readonly traffic: SharedTraffic;
  readonly peers: SharedPeers;
  readonly faults: StateFaults;
  readonly kept: KeptSections;
  readonly world: World;
  readonly attachment: Attachment;
  /** Told when a section's status is another. */
  readonly onStatus: () => void;
}

type Filter = (event: RouteEvent) => boolean;

interface Taken {
  readonly context: SectionContext;
  readonly filters: readonly Filter[];
  giveBack(): Promise<void>;
}

const take = (type: SectionType, shared: Shared, trigger: () => void): Taken => {
  const { config, services, newDrops, boundary, traffic, peers, faults, kept, world, attachment } = shared;
  const { logger, metrics } = services;
  const kernelWrites = createKernelWrites(metrics, type.name);
  const [net, nft] = [kernelWrites.net(shared.net), kernelWrites.nft(shared.nft)];
  const tables = createSectionTables(type, { nft, newDrops, onChange: trigger, logger });
  const filters: Filter[] = [];
  const taken = new Set<() => unknown>([() => tables[Symbol.dispose]()]);
  const context: SectionContext = {
    nodeName: config.nodeName,
    net,
    nft,
    kernelWrites,
    boundary: boundary.of(type.name),
    traffic,
    peers,
    table: (family) => tables.of(family),
    kept: kept.of(type.name),
    openInputs: (kinds, filters) => {
      const source: WorldSource<typeof kinds> = world.inputs(kinds, filters);
      source.onChange(trigger);
      // A section that opens and stops sources as it goes must not keep what they held.
      const stop = async (): Promise<void> => {
        taken.delete(stop);
        await source.stop();
      };
      taken.add(stop);
      return { ...source, stop };
    },
    cluster: world.cluster,
    attachment,
    trigger,
    statusChanged: shared.onStatus,
    onKernelChange: (filter) => void filters.push(filter),
    faults,
    logger,
    metrics,
  };
  const giveBack = async (): Promise<void> => {
    filters.length = 0;
    const all = [...taken].toReversed();
    taken.clear();
    for (const give of all) await give();
  };
  return { context, filters, giveBack };
};

/** Asks the section whether an event concerns it; where it cannot say, it gets a pass. */
const createFilter = (section: string, { logger }: HostServices) => {
  let problem: string | undefined;
  return {
    problem: () => problem,
    concerns(filters: readonly Filter[], event: RouteEvent): boolean {
      try {
        const concerns = filters.some((is) => is(event));
        problem = undefined;
        return concerns;
      } catch (error) {
        const { message } = error as Error;
        if (problem === undefined) logger.error({ section, error: message }, 'filter of kernel events failed');
        problem = `cannot tell which changes in the kernel concern it: ${message}`;
        return true;
      }
    },
  };
};

export interface RunningSection {
  readonly isReady: boolean;
  /** The first attempt to open it has come to an end. */
  readonly attempted: Promise<void>;
  trigger(): void;
  onKernelEvent(event: RouteEvent): void;
  /** Never rejects, and takes no longer than that. */
  stop(withinMs: number): Promise<void>;
}

/** @throws Error when an essential section cannot be opened */
export const startSection = async (
  type: SectionType,
  shared: Shared,
  reporting: Reporting,
): Promise<RunningSection> => {
  const { name } = type;
  const { services, attachment } = shared;
  const attempted = Promise.withResolvers<void>();
  const filter = createFilter(name, services);
  let taken: Taken | undefined;
  let trigger: () => void = () => undefined;

  const open = async (): Promise<Section> => {
    taken = take(type, shared, () => trigger());
    try {
      const section = await type.open(taken.context);
      attachment.hooks.handle(name, section.hook ?? {});
      return section;
    } catch (error) {
      await taken.giveBack();
      throw error;
    } finally {
      attempted.resolve();
    }
  };
  const withOwnProblems = (report: SectionReport): SectionReport => {
    const own = [filter.problem(), attachment.hooks.problemOf(name)].flatMap((message) =>
      message === undefined ? [] : sectionFailed(name, message),
    );
    return own.length === 0 ? report : { ...report, problems: [...report.problems, ...own] };
  };
  const section = type.isEssential ? { section: await open() } : {};
  const own = reporting.of(name, () => trigger());
  const runner = runSection(type, {
    open,
    ...section,
    reporting: { ...own, submit: (report) => own.submit(withOwnProblems(report)) },
    ...services,
  });
  trigger = () => runner.trigger();
  const stop = async (): Promise<void> => {
    await runner.stop();
    await taken?.giveBack();
  };
  return {
    get isReady() {
      return runner.isReady;
    },
    attempted: attempted.promise,
    trigger,
    onKernelEvent(event) {
      if (filter.concerns(taken?.filters ?? [], event)) trigger();
    },
    async stop(withinMs) {
      attachment.hooks.handle(name, undefined);
      const message = `not stopped within ${withinMs} ms`;
      await withDeadline(stop, { deadlineMs: withinMs, message }).catch((error: unknown) =>
        services.logger.error({ section: name, err: error }, 'a section did not stop cleanly'),
      );
    },
  };
};
