import type { DeviceState } from '@unbounded/keeper-protocol';

/**
 * How often processes of devices were started again, by what the keeper counts. Its counts begin anew with each keeper, and with each
 * container of a pod.
 */

interface Started {
  readonly podUID: string;
  readonly keeper: DeviceState | undefined;
}

interface Known {
  readonly netns: string;
  readonly starts: number;
  /** A first start is no restart. */
  readonly hasRun: boolean;
}

const restartsOf = ({ netns, starts }: DeviceState, before: Known | undefined): number => {
  if (before?.netns !== netns) return 0;
  const more = starts >= before.starts ? starts - before.starts : starts;
  return before.hasRun ? more : Math.max(more - 1, 0);
};

/** @returns restarts since it was called last; what was before the first call is not counted */
export const createRestartCount = (): ((devices: readonly Started[]) => number) => {
  const known = new Map<string, Known>();
  return (devices) => {
    const there = new Set(devices.map(({ podUID }) => podUID));
    for (const podUID of known.keys()) if (!there.has(podUID)) known.delete(podUID);
    let restarts = 0;
    for (const { podUID, keeper } of devices) {
      if (!keeper) continue;
      const { netns, starts } = keeper;
      const before = known.get(podUID);
      restarts += restartsOf(keeper, before);
      known.set(podUID, { netns, starts, hasRun: starts > 0 || (before?.netns === netns && before.hasRun) });
    }
    return restarts;
  };
};
