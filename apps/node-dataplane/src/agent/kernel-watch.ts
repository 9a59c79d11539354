import type { Monitor, RouteSocket } from '@unbounded/netlink';
import type { Logger } from '@unbounded/telemetry';
import type { RunningSection } from './open-section.ts';

const REOPEN_MS = 1000;

type Watching = Pick<RunningSection, 'trigger' | 'onKernelEvent'>;

/** Each section hears what concerns it, and all when something was missed. A monitor that ends is opened anew. */
export const watchKernel = (
  net: Pick<RouteSocket, 'monitor'>,
  sections: readonly Watching[],
  logger: Pick<Logger, 'error'>,
): Disposable => {
  let monitor: Monitor | undefined;
  let reopening: NodeJS.Timeout | undefined;
  const triggerAll = (): void => {
    for (const section of sections) section.trigger();
  };
  const reopenLater = (error: Error): void => {
    logger.error({ err: error }, 'no notification of the kernel arrives; they are subscribed to anew');
    reopening = setTimeout(() => {
      open();
      triggerAll(); // for what was missed
    }, REOPEN_MS);
  };
  const open = (): void => {
    try {
      monitor = net.monitor(['link', 'address', 'route', 'rule', 'netconf'], {
        onEvent: (event) => {
          for (const section of sections) section.onKernelEvent(event);
        },
        onResync: triggerAll,
        onError: reopenLater,
      });
    } catch (error) {
      reopenLater(error as Error);
    }
  };
  open();
  return {
    [Symbol.dispose]() {
      clearTimeout(reopening);
      monitor?.close();
    },
  };
};
