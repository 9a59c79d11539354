import type { Problem } from '@unbounded/topology';
import type { TailnetAgent } from './tailnet-agent.ts';

/** Whether the tailnet agent answers, while pods wait for it. */

export interface AgentWatch {
  /** The pod waits for the work. */
  during<T>(pod: string, work: () => Promise<T>): Promise<T>;
  /** Looks whether it answers, if pods wait. Never rejects. */
  problems(): Promise<readonly Problem[]>;
  /** It is to be looked again soon. */
  readonly isLooking: boolean;
}

export interface AgentWatchParts {
  readonly agent: Pick<TailnetAgent, 'check'>;
  readonly socketPath: string;
  /** A look is due. */
  readonly trigger: () => void;
  readonly lookAfterMs?: number;
  readonly answerWithinMs?: number;
}

/** The network of a device takes less. */
const LOOK_AFTER_MS = 3000;
const ANSWER_WITHIN_MS = 2000;
/** The runtime takes a pod that was refused away, and comes again: in between it waits, too. */
const STILL_WAITS_MS = 60_000;
const MOST_NAMED = 3;

/** Of no container: also who does not know it answers. */
const NOBODY = { containerId: '', netns: '', ifName: '' };

const unavailable = (socketPath: string, pods: readonly string[]): Problem => {
  const named = pods.slice(0, MOST_NAMED).join(', ');
  const others = pods.length > MOST_NAMED ? ` and ${pods.length - MOST_NAMED} more` : '';
  return {
    reason: 'TailnetAgentUnavailable',
    message: `the tailnet agent does not answer at ${socketPath}, and pods wait for it (${named}${others}): look whether a Pod of the DaemonSet tailnet runs on this node, and at its log; pods that do not join start meanwhile`,
  };
};

export const createAgentWatch = (parts: AgentWatchParts): AgentWatch => {
  const { agent, socketPath, trigger, lookAfterMs = LOOK_AFTER_MS, answerWithinMs = ANSWER_WITHIN_MS } = parts;
  /** By name, until when a pod counts as waiting; Infinity: its ADD is under way. */
  const waiting = new Map<string, number>();
  let isSilent = false;
  const forgetUntil = (nowMs: number): void => {
    for (const [pod, untilMs] of waiting) if (untilMs < nowMs) waiting.delete(pod);
  };
  return {
    async during(pod, work) {
      waiting.set(pod, Infinity);
      const look = setTimeout(trigger, lookAfterMs).unref();
      try {
        return await work();
      } finally {
        clearTimeout(look);
        if (isSilent) waiting.set(pod, performance.now() + STILL_WAITS_MS);
        else waiting.delete(pod);
      }
    },
    async problems() {
      forgetUntil(performance.now());
      isSilent =
        waiting.size > 0 &&
        (await agent.check(NOBODY, { timeoutMs: answerWithinMs }).then(
          () => false,
          () => true,
        ));
      // Those that were refused come again and find it.
      if (!isSilent) forgetUntil(Infinity);
      return isSilent ? [unavailable(socketPath, [...waiting.keys()].sort())] : [];
    },
    get isLooking() {
      return waiting.size > 0;
    },
  };
};
