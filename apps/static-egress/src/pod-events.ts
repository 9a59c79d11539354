import type { EgressPlan } from '@unbounded/egress';
import type { EventRecorder, Pod } from '@unbounded/kube';

import { planPodNotices, type PodNotice } from './pod-events.plan.ts';

/** Of one plan; the conditions of the rules count the rest. */
const MOST_AT_ONCE = 20;

const keyOf = ({ namespace, name, reason, note }: PodNotice): string => [namespace, name, reason, note].join('\0');

/**
 * Events on pods, each once. The first plan of a term tells nothing: what was so before is told already, by the leader before or
 * by this program before it was started anew.
 */
export const createPodEvents = (
  recorder: EventRecorder,
  podOf: (key: string) => Pod | undefined,
): { beginTerm(): void; tell(plan: EgressPlan): void } => {
  let told: ReadonlySet<string> | undefined;
  return {
    beginTerm: () => {
      told = undefined;
    },
    tell: (plan) => {
      const notices = planPodNotices(plan);
      const before = told;
      told = new Set(notices.map(keyOf));
      if (!before) return;
      for (const notice of notices.filter((one) => !before.has(keyOf(one))).slice(0, MOST_AT_ONCE)) {
        const { namespace, name, reason, note } = notice;
        const about = podOf(`${namespace}/${name}`);
        if (about) recorder.record({ about, type: 'Warning', reason, action: 'Cover', note });
      }
    },
  };
};
