import { TAILNET_INTERFACE } from '@unbounded/keeper-protocol';
import type { AddResponse } from '@unbounded/tailnet-cni';
import type { Logger } from '@unbounded/telemetry';
import { podName } from '../attachment/hook-choice.ts';
import type { HookHandlers, ResultAddition } from '../attachment/hook.port.ts';
import type { PodAttachment } from '../attachment/pods.ts';
import type { AgentWatch } from './agent-watch.ts';
import type { CatchUp } from './catch-up.ts';
import type { PodChoice } from './pod-choice.ts';
import { containerOf, isRefusal, NOT_FOUND, requestOf, type TailnetAgent } from './tailnet-agent.ts';

/** What ADD, DEL and CHECK do about pods that may join. About others nobody is asked. */

/** Less than the hook has, and more than the tailnet agent takes: it says what it waited for. */
const ADD_WITHIN_MS = 95_000;
/** DEL and CHECK do not wait for a tailnet agent that is being replaced. */
const SHORT_MS = 2000;

/** No routes, and nothing for the CNI plugin to set up: both are the keeper's. */
const additionOf = ({ tailscaleIpv4, tailscaleIpv6 }: AddResponse, netns: string): ResultAddition => {
  const addresses = [
    ...(tailscaleIpv4 === '' ? [] : [`${tailscaleIpv4}/32`]),
    ...(tailscaleIpv6 === '' ? [] : [`${tailscaleIpv6}/128`]),
  ];
  return {
    interfaces: [{ name: TAILNET_INTERFACE, sandbox: netns }],
    ips: addresses.map((address) => ({ address, interface: 0 })),
  };
};

export interface HandlerParts {
  readonly agent: TailnetAgent;
  readonly choice: PodChoice;
  readonly watch: Pick<AgentWatch, 'during'>;
  readonly catchUp: Pick<CatchUp, 'leave'>;
  /** Containers whose ADD is under way. */
  readonly adding: Set<string>;
  readonly logger: Logger;
}

export const createHandlers = (parts: HandlerParts): Required<Omit<HookHandlers, 'status'>> => {
  const { agent, choice, watch, catchUp, adding, logger } = parts;
  /** Containers that the tailnet agent was asked to add. */
  const added = new Set<string>();
  const concerns = (pod: PodAttachment): boolean => added.has(pod.containerId) || choice.mayBe(pod);

  return {
    // Where the runtime passes none, the API server answers while the port is being made.
    begin: (pod) => void pod.annotations().catch(() => undefined),
    async add(pod, signal) {
      const { containerId, netns } = pod;
      adding.add(containerId);
      try {
        catchUp.leave(containerId);
        if (!(await choice.mayJoin(pod, () => pod.annotations()))) return;
        added.add(containerId);
        const asked = () => agent.add(requestOf(pod), { timeoutMs: ADD_WITHIN_MS, signal });
        return additionOf(await watch.during(podName(pod), asked), netns);
      } catch (error) {
        if (!isRefusal(error)) throw error;
        logger.info({ pod: podName(pod), reason: (error as Error).message }, 'a pod starts without a device');
        return;
      } finally {
        adding.delete(containerId);
      }
    },
    async remove(pod, signal) {
      catchUp.leave(pod.containerId);
      if (!concerns(pod)) return;
      added.delete(pod.containerId);
      await agent.del(containerOf(pod), { timeoutMs: SHORT_MS, signal }).catch((error: Error) =>
        // The device is removed all the same: by the record of the pod, which goes with it.
        logger.warn({ pod: podName(pod), error: error.message }, 'the tailnet agent is not told that a pod goes'),
      );
    },
    async check(pod, signal) {
      if (!concerns(pod)) return undefined;
      const answer = await agent.check(containerOf(pod), { timeoutMs: SHORT_MS, signal }).catch(() => undefined);
      return !answer || answer.healthy || answer.message === NOT_FOUND ? undefined : answer.message;
    },
  };
};
