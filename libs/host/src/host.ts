import type { DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  createLogger,
  createMetrics,
  type Logger,
  type LogLevel,
  type Metrics,
  startTracing,
} from '@unbounded/telemetry';

import { noteBuild } from './build-info.ts';
import { drainParts } from './drain.ts';
import { type Check, type HealthServer, type ListenerState, startHealthServer } from './health-server.ts';
import { HOST_PARTS } from './host-module.ts';
import type { HostPart } from './part.ts';

/** What the host gives to the module. */
export interface HostServices {
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Listeners of health and metrics that have no port: it is taken, or the address is not there. Not set: there are none. */
  readonly listenerProblems?: () => readonly { readonly reason: string; readonly message: string }[];
}

export interface HostOptions {
  readonly name: string;
  readonly logLevel?: LogLevel;
  /** 0 takes a free port. */
  readonly healthPort: number;
  /** See `listenAddresses`; every address when not set. */
  readonly healthAddresses?: readonly string[];
  /** Time for a clean end after SIGTERM; the pod's terminationGracePeriodSeconds must be longer. */
  readonly drainMs?: number;
  /** Composes the program: see `hostModule`. */
  readonly module: (services: HostServices) => DynamicModule;
}

const DEFAULT_DRAIN_MS = 20_000;

const describeListener = ({ address, error }: ListenerState, port: number): string =>
  `${address === '' ? 'every address' : address}, TCP port ${port}: ${error}; metrics or readiness cannot be read there: free the port, or choose others with --health-port and --health-address`;

const problemsOf = (health: HealthServer | undefined, port: number) =>
  (health?.listeners ?? [])
    .filter(({ error }) => error !== undefined)
    .map((state) => ({ reason: 'ListenFailed', message: describeListener(state, port) }));

const untilSignal = (): Promise<string> =>
  new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal));
  });

/** The parts while they live. */
const createLifetime = (parts: readonly HostPart[]) => {
  const started: HostPart[] = [];
  let isDraining = false;
  return {
    started,
    start: async (): Promise<void> => {
      for (const part of parts) {
        if (isDraining) return;
        started.push(part); // also one that fails half-way is stopped
        await part.start();
      }
    },
    failed: Promise.race([...parts.flatMap(({ failed }) => failed ?? []), new Promise<never>(() => {})]),
    beginDrain: () => {
      isDraining = true;
    },
    checks: (): readonly Check[] => [
      { name: 'lifetime', isReady: !isDraining },
      ...parts.map((part) => ({ name: part.name, isReady: started.includes(part) && (part.isReady ?? true) })),
    ],
  };
};

type Lifetime = ReturnType<typeof createLifetime>;

/** Resolves to the exit code when a signal came or a part failed. */
const live = async (lifetime: Lifetime, signalled: Promise<string>, logger: Logger): Promise<number> => {
  try {
    const signal = await Promise.race([lifetime.start().then(() => signalled), signalled, lifetime.failed]);
    logger.info({ signal }, 'draining');
    return 0;
  } catch (error) {
    logger.fatal({ err: error }, 'fatal error, shutting down');
    return 1;
  }
};

/**
 * Runs a program from start to end: health server, then the parts of the module in order; on SIGTERM or SIGINT
 * readiness fails and the parts stop in the reverse order within `drainMs`. Ends the process: 0 after a clean drain,
 * 1 when a part failed or did not stop.
 */
export const runHost = async ({
  name,
  logLevel = 'info',
  healthPort,
  healthAddresses = [''],
  drainMs = DEFAULT_DRAIN_MS,
  module,
}: HostOptions): Promise<void> => {
  // First: a program is PID 1 of its container, which a signal without a handler does not end.
  const signalled = untilSignal();
  const logger = createLogger({ name, level: logLevel });
  const metrics = createMetrics({ processMetrics: true });
  noteBuild(metrics, name, process.env);
  let health: HealthServer | undefined;
  const listenerProblems = () => problemsOf(health, healthPort);
  const tracing = await startTracing(name, process.env);
  const context = await NestFactory.createApplicationContext(module({ logger, metrics, listenerProblems }), {
    logger: false,
    abortOnError: false,
  });
  const lifetime = createLifetime(context.get<readonly HostPart[]>(HOST_PARTS));
  health = await startHealthServer({
    port: healthPort,
    addresses: healthAddresses,
    checks: lifetime.checks,
    metrics,
    onListener: ({ address, error }) =>
      error === undefined
        ? logger.info({ address, healthPort }, 'serving health and metrics')
        : logger.error({ address, healthPort, error }, 'cannot listen for health and metrics; retrying'),
  });
  logger.info({ healthPort: health.port, startedMs: Math.round(performance.now()) }, 'started');
  const code = await live(lifetime, signalled, logger);
  lifetime.beginDrain();
  const unclean = await drainParts(lifetime.started, drainMs, logger);
  await Promise.allSettled([context.close(), tracing.stop(), health.close()]);
  logger.info({ unclean }, 'ended');
  process.exit(code === 0 && unclean.length > 0 ? 1 : code);
};
