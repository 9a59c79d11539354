import type { MonitorHandlers, RouteSocket } from '@unbounded/netlink';
import { expect, test, vi } from 'vitest';
import { watchKernel } from './kernel-watch.ts';

test('a subscription to the kernel that ends is made anew, also when that fails at first, and all sections look', () => {
  vi.useFakeTimers();
  try {
    let handlers: MonitorHandlers | undefined;
    const opened: string[] = [];
    let refusals = 0;
    const monitor = (_: unknown, given: MonitorHandlers) => {
      if (refusals-- > 0) throw new Error('EMFILE');
      opened.push('opened');
      handlers = given;
      const close = (): void => void opened.push('closed');
      return { close, [Symbol.dispose]: close };
    };
    const section = { trigger: vi.fn(), onKernelEvent: vi.fn() };
    const logger = { error: vi.fn() };
    const watch = watchKernel({ monitor } as unknown as Pick<RouteSocket, 'monitor'>, [section], logger);
    expect([opened, section.trigger.mock.calls.length]).toEqual([['opened'], 0]);
    refusals = 1;
    handlers!.onError!(new Error('EMSGSIZE'));
    vi.advanceTimersByTime(1000);
    expect([opened, logger.error.mock.calls.length]).toEqual([['opened'], 2]);
    vi.advanceTimersByTime(1000);
    expect([opened, section.trigger.mock.calls.length]).toEqual([['opened', 'opened'], 2]);
    handlers!.onError!(new Error('EMSGSIZE'));
    watch[Symbol.dispose]();
    vi.advanceTimersByTime(60_000);
    expect(opened).toEqual(['opened', 'opened', 'closed']);
  } finally {
    vi.useRealTimers();
  }
});
