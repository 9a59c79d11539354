import { LINK_ALIAS, NFT_GUARD_TABLE } from '@unbounded/config/ownership';
import { listed } from '@unbounded/membership';
import type { RouteEvent } from '@unbounded/netlink';
import { watchTable } from '../kernel/table-watch.ts';
import type { NodeEvent, SectionType } from '../section.port.ts';
import { createProblemLog } from '../world/problem-log.ts';

/**
 * What the agent itself keeps true of the node, whatever its sections do: the table of what pods may send is repaired, files
 * that could not be written are written, and pods whose DEL was missed are detached. In a loop of its own, so that all of it goes on
 * while a section hangs.
 */

const EVERY_MS = 5000;

/** Ports of pods that went, and the bridge as it comes. */
const concernsPods = ({ subject, change, value }: RouteEvent): boolean =>
  subject === 'link' && (change === 'deleted' || value.alias === LINK_ALIAS);

const eventsOf = (notes: readonly string[]): NodeEvent[] =>
  notes.length === 0
    ? []
    : [{ type: 'Warning', reason: 'PodFramesDropped', action: 'GuardPods', note: listed(notes, '; ') }];

export const nodeSection: SectionType = {
  name: 'node',
  async open({ attachment: { guard, detachGone }, nft, faults, trigger, onKernelChange, logger }) {
    const logProblems = createProblemLog(logger);
    const watch = watchTable(nft, { family: 'bridge', name: NFT_GUARD_TABLE }, { onChange: trigger, logger });
    onKernelChange(concernsPods);
    faults.onChange(trigger);
    return {
      async pass() {
        const unguarded = await guard.ensure();
        faults.retry();
        void detachGone(); // sections' hooks may take their time
        const problems = [...unguarded, ...faults.problems()];
        logProblems(problems);
        return { nextPassMs: EVERY_MS, report: { problems, events: eventsOf(guard.takeNotes()) } };
      },
      async stop() {
        watch[Symbol.dispose]();
      },
    };
  },
};
