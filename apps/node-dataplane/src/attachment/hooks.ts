import type { Logger } from '@unbounded/telemetry';
import { createContainerQueue } from './container-queue.ts';
import { callHook, settleWithin } from './hook-call.ts';
import { createHookChoice, podName, portOwner, type SectionHook } from './hook-choice.ts';
import type { AddedPod, Annotations, HookHandlers, ResultAddition } from './hook.port.ts';
import { HookError, type PodNetwork, type PodPorts } from './pod-network.ts';
import type { PodAttachment } from './pods.ts';

/** Pods at their ports, and what sections do with them. */

export interface HookedPods extends PodNetwork {
  /** The section is open, and handles pods by these; undefined: it is not open any more. */
  handle(section: string, handlers: HookHandlers | undefined): void;
  /** What is wrong with the section's hook, in words. */
  problemOf(section: string): string | undefined;
}

export interface HookedPodsParts {
  readonly hooks: readonly SectionHook[];
  readonly ports: PodPorts;
  /** The pods that are attached, for DEL and CHECK. */
  readonly registered: () => readonly PodAttachment[];
  /** From the API server: for a runtime that passes none. */
  readonly annotationsOf: (pod: PodAttachment) => Promise<Annotations>;
  readonly logger: Logger;
  /** For how long an ADD that was given up holds back what follows for its container, milliseconds. */
  readonly lateMs?: number;
}

const LATE_MS = 10_000;

const once = <T>(work: () => Promise<T>): (() => Promise<T>) => {
  let result: Promise<T> | undefined;
  return () => (result ??= work());
};

/** Calls of the hooks for one pod, each at its time. */
const createCalls = ({ hooks, ports, annotationsOf, logger }: HookedPodsParts) => {
  const open = new Map<string, HookHandlers>();
  const choice = createHookChoice(hooks, { isOpen: (section) => open.has(section), logger });
  const begin = ({ section }: SectionHook, pod: AddedPod): void => {
    try {
      open.get(section)?.begin?.(pod);
    } catch (error) {
      logger.error({ section, pod: podName(pod), error: (error as Error).message }, 'a hook for pods is broken');
    }
  };
  return {
    open,
    choice,
    /** @param late gets what a hook may still do after its time */
    async add(
      pod: PodAttachment,
      passed: Annotations | undefined,
      asked: readonly SectionHook[],
      late: Promise<void>[],
    ): Promise<readonly ResultAddition[]> {
      const owner = portOwner(pod, asked);
      if (pod.joins && owner === undefined)
        throw new HookError('Networks are off on this node: see node-dataplane.l2 of the chart');
      const added = { ...pod, annotations: once(async () => passed ?? (await annotationsOf(pod))) };
      for (const hook of asked) begin(hook, added);
      await ports.attach(owner === undefined ? pod : { ...pod, portOf: owner });
      const additions: ResultAddition[] = [];
      for (const hook of asked) {
        const call = callHook(hook, async (signal) => open.get(hook.section)?.add?.(added, signal));
        late.push(call.settled);
        const addition = await call.answer;
        if (addition) additions.push(addition);
      }
      return additions;
    },
    /** Never rejects. */
    async remove(pod: PodAttachment): Promise<void> {
      for (const hook of choice.concerning(pod).toReversed())
        await callHook(hook, async (signal) => open.get(hook.section)?.remove?.(pod, signal)).answer.catch(
          (error: Error) => logger.error({ pod: podName(pod), error: error.message }, 'cannot detach a pod entirely'),
        );
    },
    async check(pod: PodAttachment): Promise<string | undefined> {
      try {
        for (const hook of choice.deciding(pod)) {
          const found = await callHook(hook, async (signal) => open.get(hook.section)?.check?.(pod, signal)).answer;
          if (found !== undefined) return found;
        }
        return undefined;
      } catch (error) {
        return (error as Error).message;
      }
    },
    status(): string | undefined {
      for (const { section, unavailable, concerns } of hooks) {
        // One that has to do with every pod, and refuses them.
        if (!open.has(section) && unavailable === 'refuse' && !concerns) return `section ${section}: it is not open`;
        const reason = open.get(section)?.status?.();
        if (reason !== undefined) return `section ${section}: ${reason}`;
      }
      return undefined;
    },
  };
};

export const hookedPods = (parts: HookedPodsParts): HookedPods => {
  const { ports, registered, logger, lateMs = LATE_MS } = parts;
  const queue = createContainerQueue();
  const { open, choice, ...calls } = createCalls(parts);
  const find = (containerId: string, interfaceName: string): PodAttachment | undefined =>
    registered().find((pod) => pod.containerId === containerId && pod.interface === interfaceName);

  const detachNow = async (containerId: string, interfaceName: string): Promise<void> => {
    const pod = find(containerId, interfaceName);
    if (pod) await calls.remove(pod);
    await ports.detach(containerId, interfaceName);
  };
  const detach = (containerId: string, interfaceName: string): Promise<void> =>
    queue.run(containerId, () => detachNow(containerId, interfaceName));

  const removeUnlessThere = async (pod: PodAttachment): Promise<void> => {
    if (!find(pod.containerId, pod.interface)) await calls.remove(pod);
  };
  /** What an ADD that failed did is undone, also what it does after its time. */
  const undo = async (pod: PodAttachment, late: readonly Promise<void>[]): Promise<void> => {
    if (!(await settleWithin(late, lateMs))) {
      logger.error({ pod: podName(pod), lateMs }, 'a hook goes on after its time; what it does is undone when it ends');
      void Promise.all(late).then(() => queue.run(pod.containerId, () => removeUnlessThere(pod)));
    }
    await detachNow(pod.containerId, pod.interface).catch((error: Error) =>
      logger.error({ pod: podName(pod), error: error.message }, 'cannot undo what was done for a pod that was refused'),
    );
  };

  return {
    handle(section, handlers) {
      if (handlers) open.set(section, handlers);
      else open.delete(section);
    },
    problemOf: (section) => choice.problemOf(section),
    attach(pod, passed) {
      const answer = Promise.withResolvers<readonly ResultAddition[]>();
      void queue.run(pod.containerId, async () => {
        const late: Promise<void>[] = [];
        let asked: readonly SectionHook[] | undefined;
        try {
          asked = choice.deciding(pod);
          answer.resolve(await calls.add(pod, passed, asked, late));
        } catch (error) {
          answer.reject(error); // the runtime need not wait for what is undone
          if (asked) await undo(pod, late);
        }
      });
      return answer.promise;
    },
    detach,
    async keepOnly(valid, configuration) {
      const kept = new Set(valid.map(({ containerId, interfaceName }) => `${containerId}/${interfaceName}`));
      const gone = registered()
        .filter(({ joins }) => joins?.configuration === configuration)
        .filter((pod) => !kept.has(`${pod.containerId}/${pod.interface}`));
      const results = await Promise.allSettled(gone.map((pod) => detach(pod.containerId, pod.interface)));
      return results.flatMap((result, index) =>
        result.status === 'rejected' ? `pod ${podName(gone[index]!)}: ${(result.reason as Error).message}` : [],
      );
    },
    check: (containerId, interfaceName) =>
      queue.run(containerId, async () => {
        const wrong = await ports.check(containerId, interfaceName);
        const pod = find(containerId, interfaceName);
        return wrong === undefined && pod ? await calls.check(pod) : wrong;
      }),
    status: () => calls.status(),
  };
};
