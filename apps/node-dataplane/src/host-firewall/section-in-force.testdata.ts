import { createMetrics, silentLogger as logger } from '@unbounded/telemetry';
import { createSharedTraffic } from '../kernel/overlay-traffic.ts';
import type { Section, SectionContext, SectionType } from '../section.port.ts';

/** Sections in force, as the agent runs them: a pass when one asks for it, and when one is due. */

export interface SectionsInForce {
  open(type: SectionType): Promise<Section>;
  /** As the agent ends: with the passes that were asked for. */
  stop(): Promise<void>;
}

type Given = Pick<SectionContext, 'nft'> & Partial<Pick<SectionContext, 'boundary' | 'kept' | 'traffic'>>;

const NOTHING_KEPT: SectionContext['kept'] = { read: () => undefined, write: () => undefined };
const NO_BOUNDARY: SectionContext['boundary'] = { set: () => undefined, all: () => [], onChange: () => undefined };

/** @param longestTimerMs passes that are due later are the test's to make */
export const sectionsInForce = (given: Given, longestTimerMs = Infinity): SectionsInForce => {
  const ends: (() => Promise<void>)[] = [];
  return {
    async open(type) {
      let section: Section | undefined;
      let running = Promise.resolve();
      let isOver = false;
      const runPass = async (): Promise<void> => {
        if (isOver) return;
        const { nextPassMs } = await section!.pass();
        if (nextPassMs <= longestTimerMs) setTimeout(context.trigger, nextPassMs).unref();
      };
      const context = {
        ...{ boundary: NO_BOUNDARY, kept: NOTHING_KEPT, traffic: createSharedTraffic() },
        ...given,
        trigger: () => void (running = running.then(runPass)),
        ...{ logger, metrics: createMetrics() },
      } as Partial<SectionContext> as SectionContext;
      section = await type.open(context);
      ends.push(async () => {
        isOver = true;
        await section?.stop();
        await running;
      });
      return section;
    },
    async stop() {
      for (const end of ends.splice(0)) await end();
    },
  };
};
