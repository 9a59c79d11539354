import { createBoundary } from '../kernel/boundary-additions.ts';
import { setTimeout as delay } from 'node:timers/promises';
import { siteKind } from '@unbounded/crds';
import type { RouteEvent } from '@unbounded/netlink';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { afterEach, expect, test } from 'vitest';
import type { HookHandlers } from '../attachment/hook.port.ts';
import type { Section, SectionContext, SectionReport, SectionType } from '../section.port.ts';
import type { Reporting } from './reporting.ts';
import { type RunningSection, type Shared, startSection } from './open-section.ts';

const EVENT = { subject: 'link', change: 'new', value: {} } as RouteEvent;
const running: RunningSection[] = [];
afterEach(async () => {
  for (const section of running.splice(0)) await section.stop(100);
});

/** What the agent shares, counting what is taken of it and not given back. */
const openShared = () => {
  const held = { inputs: 0, tables: 0 };
  const handled = new Map<string, HookHandlers>();
  const shared = {
    config: { nodeName: 'w1' },
    services: { logger: silentLogger, metrics: createMetrics() },
    net: { links: {}, addresses: {}, routes: {}, nexthops: {}, rules: {}, neighbours: {}, trafficControl: {} },
    nft: {
      monitor: () => {
        held.tables++;
        return { close: () => void held.tables-- };
      },
    },
    newDrops: () => undefined,
    boundary: createBoundary(),
    kept: { of: () => ({ read: () => undefined, write: () => undefined }) },
    world: {
      inputs: () => {
        held.inputs++;
        return { snapshot: () => undefined, onChange: () => undefined, stop: async () => void held.inputs-- };
      },
    },
    attachment: {
      hooks: {
        problemOf: () => undefined,
        handle: (name: string, handlers?: HookHandlers) =>
          void (handlers ? handled.set(name, handlers) : handled.delete(name)),
      },
    },
  } as unknown as Shared;
  return { shared, held, handled };
};

const section = (settings: Partial<Section> = {}): Section => ({
  pass: async () => ({ nextPassMs: 60_000, report: { problems: [] } }),
  stop: async () => undefined,
  ...settings,
});
const start = async (type: Partial<SectionType>, bed = openShared()) => {
  const reports: SectionReport[] = [];
  const reporting: Reporting = {
    of: () => ({ submit: (report) => void reports.push(report), fail: () => undefined }),
    stop: async () => undefined,
  };
  const whole: SectionType = { name: 'example', open: async () => section(), ...type };
  const started = await startSection(whole, bed.shared, reporting);
  running.push(started);
  return { ...bed, started, reports };
};
const takeAll = ({ openInputs, table, onKernelChange }: SectionContext): void => {
  openInputs({ sites: siteKind });
  table('inet');
  onKernelChange(() => true);
};

test('what a section took is given back when it cannot be opened, each time, and when it stops', async () => {
  let attempts = 0;
  const { started, held, handled } = await start({
    open: async (context) => {
      takeAll(context);
      if (++attempts < 3) throw new Error('no module');
      return section({ hook: {} });
    },
  });
  await started.attempted;
  await until('it is given back', () => held.inputs === 0);
  expect([held.tables, handled.size]).toEqual([0, 0]);
  await until('it is open', () => handled.has('example'));
  expect([held.inputs, held.tables, attempts]).toEqual([1, 1, 3]);
  await started.stop(1000);
  expect([held.inputs, held.tables, handled.size]).toEqual([0, 0, 0]);
});

test('a source that a section stops itself is not held, nor stopped again', async () => {
  let source: { stop(): Promise<void> } | undefined;
  const { started, held } = await start({
    open: async ({ openInputs }) => {
      source = openInputs({ sites: siteKind });
      openInputs({ sites: siteKind });
      return section();
    },
  });
  await started.attempted;
  expect(held.inputs).toBe(2);
  await source!.stop();
  expect(held.inputs).toBe(1);
  await started.stop(1000);
  expect(held.inputs).toBe(0); // and not -1
});

test('an essential section that cannot be opened ends the start, and gives back what it took', async () => {
  const bed = openShared();
  const open = async (context: SectionContext): Promise<Section> => {
    takeAll(context);
    throw new Error('no module');
  };
  await expect(start({ isEssential: true, open }, bed)).rejects.toThrow('no module');
  expect(bed.held).toEqual({ inputs: 0, tables: 0 });
});

test('a filter of kernel events that throws is a problem of its section, which gets a pass', async () => {
  let passes = 0;
  let isBroken = true;
  const { started, reports } = await start({
    open: async ({ onKernelChange }) => {
      onKernelChange(() => {
        if (isBroken) throw new Error('no such link');
        return false;
      });
      return section({
        pass: async () => {
          passes++;
          return { nextPassMs: 60_000, report: { problems: [] } };
        },
      });
    },
  });
  await until('it is open', () => passes === 1);
  expect(() => started.onKernelEvent(EVENT)).not.toThrow();
  await until('it has another pass', () => passes === 2);
  expect(reports.at(-1)?.problems).toEqual([
    {
      reason: 'SectionFailed',
      message: 'section example: cannot tell which changes in the kernel concern it: no such link',
    },
  ]);
  isBroken = false;
  started.onKernelEvent(EVENT);
  started.trigger();
  await until('it is well again', () => reports.at(-1)?.problems.length === 0);
});

test('a section that does not stop is left behind after its time, and decides about no pod any more', async () => {
  const { started, handled } = await start({
    open: async () => section({ hook: {}, stop: () => new Promise(() => undefined) }),
  });
  await until('it is open', () => handled.has('example'));
  const stopped = started.stop(20).then(() => 'stopped');
  expect(await Promise.race([stopped, delay(5000, 'still stopping')])).toBe('stopped');
  expect(handled.size).toBe(0);
});
