import type { DeviceMetricState, Identity } from './agent-metrics.ts';
import type { Seen } from './device-look.ts';
import { deviceStateOf, type KeptPod } from './device.plan.ts';

/** What of a device is for operators. */

/** A device is up. @param seconds since its container was added; not of one that an agent before this one knew */
export type OnUp = (seconds: number, identity: Identity) => void;

/** How long a device takes from the ADD of its container on. */
export const createUpTime = (onUp: OnUp) => {
  let wanted: { readonly atMs: number; readonly identity: Identity } | undefined;
  return {
    begin: ({ addresses }: KeptPod): void => {
      wanted = { atMs: performance.now(), identity: addresses.length > 0 ? 'kept' : 'new' };
    },
    cancel: () => void (wanted = undefined),
    end(): void {
      if (wanted) onUp((performance.now() - wanted.atMs) / 1000, wanted.identity);
      wanted = undefined;
    },
  };
};

export const metricState = (pod: KeptPod, { record, status }: Seen, isUp: boolean): DeviceMetricState => {
  if (!pod.container) return 'NoContainer';
  if (isUp) return 'Running';
  if (!record && !pod.device) return 'NoRecord';
  const state = deviceStateOf(status);
  return state === 'Running' ? 'Starting' : state; // its addresses do not stand yet
};
