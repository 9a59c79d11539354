import type { ObservedDevice } from './agent-metrics.ts';
import { createDeviceLook, type DeviceLook, type DeviceLookParts, type Seen } from './device-look.ts';
import { createUpTime, metricState, type OnUp } from './device-observation.ts';
import type { KeptPod } from './device.plan.ts';
import { stands } from './keeper-files.ts';

/** One pod that is a device: it is looked at again and again, one look at a time. */

export interface PodDevice {
  readonly pod: KeptPod;
  /** Its network stands, so that nothing for the tailnet leaves by another interface. */
  readonly hasNetwork: boolean;
  /** It is Running, and its addresses stand in the pod. */
  readonly isUp: boolean;
  /** Why it is not, in words. */
  readonly problem: string;
  readonly hostName: string;
  /** For operators. */
  readonly observed: ObservedDevice;
  /** Takes what has been added for the pod, and looks at once. @throws the error of the system call: it cannot be kept */
  update(change: { readonly container: NonNullable<KeptPod['container']>; readonly start: KeptPod['start'] }): void;
  /** The container is gone, also where that cannot be kept yet: it is as soon as there is room. */
  release(): void;
  /** Something may have changed. */
  trigger(): void;
  /** No look follows; what was asked of the keeper stays. */
  stop(): Promise<void>;
}

export interface PodDeviceParts extends Omit<DeviceLookParts, 'now'> {
  readonly pod: KeptPod;
  /** @throws the error of the system call */
  readonly keep: (pod: KeptPod) => void;
  readonly onUp: OnUp;
  /** Its container was added just now. */
  readonly isAdded: boolean;
}

/** A device comes up within half a second; one that is up is asked how it is. */
const [BUSY_MS, QUIET_MS] = [100, 5000];
/** While nothing helps, it is looked at less and less often. */
const [LONGEST_BUSY_MS, GROWTH] = [2000, 1.1];

/** One run at a time, the next one at a time that each run says. */
const createRepeating = (run: () => Promise<number>) => {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  let working: Promise<void> = Promise.resolve();
  const after = (ms: number): void => {
    clearTimeout(timer);
    if (!isStopped) timer = setTimeout(() => (working = working.then(once)), ms);
  };
  const once = async (): Promise<void> => {
    if (!isStopped) after(await run());
  };
  return {
    after,
    async stop(): Promise<void> {
      isStopped = true;
      clearTimeout(timer);
      await working;
    },
  };
};

/** Why a device is not up. @param told what could not be done lately, in words; empty: nothing */
const problemOf = ({ record, status }: Seen, told: string): string => {
  if (!record) return 'tailnet-registrar has made no record of it yet';
  return told || record.status?.message || `its device is ${status?.state ?? 'starting'}`;
};

/** Tells a problem once. */
const createTelling = ({ logger, pod: { podUID } }: Pick<PodDeviceParts, 'logger' | 'pod'>) => {
  let told = '';
  return {
    get told() {
      return told;
    },
    tell(problem: string): void {
      if (problem !== told && problem !== '') logger.warn({ pod: podUID, problem }, 'cannot do what a device needs');
      told = problem;
    },
  };
};

/** How far it has come, by the last look and what the keeper says now. */
const createProgress = (keeper: PodDeviceParts['keeper'], looking: DeviceLook, podNow: () => KeptPod) => {
  const stateOf = () => keeper.stateOf(podNow().podUID);
  /** The unit of the container that the pod has now, as it stands. */
  const standing = (): Seen['unit'] => {
    const { unit } = looking.seen;
    return unit !== undefined && unit.netns === podNow().container?.netns && stands(unit, stateOf()) ? unit : undefined;
  };
  const isUp = (): boolean =>
    looking.seen.status?.state === 'Running' && (standing()?.network.addresses.length ?? 0) > 0;
  return { stateOf, standing, isUp };
};

/** The pod as it is, and as the disk has it. @param keep throws the error of the system call */
const createKeptState = (keep: (pod: KeptPod) => void, first: KeptPod) => {
  let pod = first;
  let onDisk = JSON.stringify(first);
  /** @throws the error of the system call */
  const persist = (): void => {
    const text = JSON.stringify(pod);
    if (text === onDisk) return;
    keep(pod);
    onDisk = text;
  };
  return {
    get pod() {
      return pod;
    },
    persist,
    /** Holds also where the disk cannot have it yet. */
    take(next: KeptPod): void {
      pod = next;
      try {
        persist();
      } catch {
        // The look that follows tries again, and tells.
      }
    },
    /** @throws the error of the system call: the pod is as it was */
    set(next: KeptPod): void {
      const before = pod;
      pod = next;
      try {
        persist();
      } catch (error) {
        pod = before;
        throw error;
      }
    },
  };
};

export const createPodDevice = ({ keep, onUp, isAdded, ...parts }: PodDeviceParts): PodDevice => {
  const { keeper } = parts;
  const upTime = createUpTime(onUp);
  if (isAdded) upTime.begin(parts.pod);
  const looking = createDeviceLook({ ...parts, now: () => performance.now() });
  const state = createKeptState(keep, parts.pod);
  const telling = createTelling(parts);
  let looks = 0;

  const { stateOf, standing, isUp } = createProgress(keeper, looking, () => state.pod);
  const run = async (): Promise<number> => {
    const of = state.pod;
    let hadWork = false;
    try {
      // A container that came or went meanwhile is the next look's.
      hadWork = await looking.look(of, ({ addresses, device }) =>
        state.take({ ...state.pod, addresses, ...(device && { device }) }),
      );
      state.persist();
      telling.tell('');
    } catch (error) {
      telling.tell((error as Error).message);
    }
    if (of !== state.pod && of.container !== state.pod.container) return 0;
    if (isUp()) upTime.end();
    looks = hadWork ? 0 : looks + 1;
    return isUp() || !state.pod.container ? QUIET_MS : Math.min(BUSY_MS * GROWTH ** looks, LONGEST_BUSY_MS);
  };
  const repeating = createRepeating(run);
  const trigger = (): void => {
    looks = 0;
    repeating.after(0);
  };
  trigger();

  return {
    get pod() {
      return state.pod;
    },
    get hasNetwork() {
      return standing() !== undefined;
    },
    get isUp() {
      return isUp();
    },
    get problem() {
      return stateOf()?.problem ?? problemOf(looking.seen, telling.told);
    },
    get hostName() {
      return looking.seen.record?.spec.hostName ?? '';
    },
    get observed() {
      return { podUID: state.pod.podUID, state: metricState(state.pod, looking.seen, isUp()), keeper: stateOf() };
    },
    update({ container, start }) {
      if (container.id !== state.pod.container?.id) upTime.begin(state.pod);
      state.set({ ...state.pod, start, container });
      trigger();
    },
    release() {
      upTime.cancel();
      const { container: _, ...rest } = state.pod;
      state.take(rest);
      trigger();
    },
    trigger,
    stop: () => repeating.stop(),
  };
};
