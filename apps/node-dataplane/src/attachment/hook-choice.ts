import type { Logger } from '@unbounded/telemetry';
import type { HookType } from './hook.port.ts';
import { HookError } from './pod-network.ts';
import type { PodAttachment } from './pods.ts';

/** Which sections have to do with a pod. */

export interface SectionHook extends HookType {
  readonly section: string;
}

/** The runtime takes a refused pod away and comes again with another container: in between it is told, too. */
const TOLD_FOR_MS = 60_000;

export const podName = ({ namespace, name }: PodAttachment): string => `${namespace}/${name}`;

export interface HookChoice {
  /** All that may have to do with the pod, lower orders first. */
  concerning(pod: PodAttachment): readonly SectionHook[];
  /** Those of them whose section is open. @throws HookError: one is not, or cannot tell, and refuses pods then */
  deciding(pod: PodAttachment): readonly SectionHook[];
  /** Why the section cannot tell which pods concern it, in words. */
  problemOf(section: string): string | undefined;
}

export const createHookChoice = (
  hooks: readonly SectionHook[],
  { isOpen, logger }: { readonly isOpen: (section: string) => boolean; readonly logger: Logger },
): HookChoice => {
  const ordered = hooks.toSorted((a, b) => a.order - b.order);
  const problems = new Map<string, { readonly message: string; readonly atMs: number }>();
  const ask = (hook: SectionHook, pod: PodAttachment): 'yes' | 'no' | 'unclear' => {
    try {
      return (hook.concerns?.(pod) ?? true) ? 'yes' : 'no';
    } catch (error) {
      const message = `cannot tell whether pod ${podName(pod)} concerns it: ${(error as Error).message}`;
      problems.set(hook.section, { message, atMs: performance.now() });
      logger.error({ section: hook.section, error: message }, 'a hook for pods is broken');
      return 'unclear';
    }
  };
  const decides = (hook: SectionHook, pod: PodAttachment): boolean => {
    const { section, unavailable } = hook;
    const answer = ask(hook, pod);
    if (answer === 'no') return false;
    if (answer === 'yes' && isOpen(section)) return true;
    const why = answer === 'unclear' ? problems.get(section)!.message : 'it is not open';
    if (unavailable === 'refuse') throw new HookError(`section ${section}: ${why}`);
    logger.warn({ section, pod: podName(pod), why }, 'a pod is attached without a section');
    return false;
  };
  return {
    concerning: (pod) => ordered.filter((hook) => ask(hook, pod) !== 'no'),
    deciding: (pod) => ordered.filter((hook) => decides(hook, pod)),
    problemOf(section) {
      const { message, atMs } = problems.get(section) ?? {};
      return atMs !== undefined && performance.now() - atMs < TOLD_FOR_MS ? message : undefined;
    },
  };
};

/** Whose the pod's port on the node is: the one place that decides it. @throws HookError: a section cannot tell */
export const portOwner = (pod: PodAttachment, asked: readonly SectionHook[]): string | undefined => {
  const isOwn = ({ section, port }: SectionHook): boolean => {
    try {
      return port?.(pod) === 'own';
    } catch (error) {
      throw new HookError(`section ${section}: cannot tell whose its port is: ${(error as Error).message}`);
    }
  };
  return asked.find(isOwn)?.section;
};
