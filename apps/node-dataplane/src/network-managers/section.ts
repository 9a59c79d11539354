import type { SectionType } from '../section.port.ts';
import { createProblemLog } from '../world/problem-log.ts';
import { ensureDropIns, removeDropIns } from './drop-ins.ts';

/** Network managers of the host leave the overlay alone: by files of ours in their configuration, where the operator wants them. */

/** Milliseconds: who takes a file away is not fought, and a manager that is installed later gets its own. */
const EVERY_MS = 300_000;

/** @param etc where the host's /etc is */
export const networkManagers = (etc: string): SectionType => ({
  name: 'networkmanagers',
  async open({ logger }) {
    const logProblems = createProblemLog(logger);
    return {
      async pass() {
        const { problems, events } = ensureDropIns(etc);
        logProblems(problems);
        for (const { reason, note } of events) logger.info({ reason }, note);
        return { nextPassMs: EVERY_MS, report: { problems, events } };
      },
      async stop() {},
    };
  },
  async cleanUp({ say }) {
    removeDropIns(etc, say);
  },
});
