import type { Logger, Metrics } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import type { Section, SectionPass, SectionType } from '../section.port.ts';
import { createPassMetrics } from './pass-metrics.ts';
import type { SectionReporting } from './reporting.ts';
import { type ReconcileLoop, startReconcileLoop } from './reconcile-loop.ts';

/** One section in a loop of its own: whatever it does, others go on. */
export interface SectionRunner {
  readonly isReady: boolean;
  trigger(): void;
  stop(): Promise<void>;
}

export interface RunnerParts {
  /** Tried again at each pass until it succeeds. */
  readonly open: () => Promise<Section>;
  /** Already open: an essential one. */
  readonly section?: Section;
  readonly reporting: SectionReporting;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const QUIET_MS = 200;
const RETRY_MS = 1000;
/** A pass that takes longer is reported; it goes on. */
const LONG_PASS_MS = 60_000;

export const sectionFailed = (section: string, message: string): Problem => ({
  reason: 'SectionFailed',
  message: `section ${section}: ${message}`,
});
const CONSEQUENCE = 'keeping its current kernel state; other sections are not affected, and the agent retries';

export const runSection = (type: SectionType, parts: RunnerParts): SectionRunner => {
  const { open, reporting, logger } = parts;
  let { section } = parts;
  const metrics = createPassMetrics(parts.metrics, type.name);
  const fail = ({ message }: Error): void => reporting.fail(sectionFailed(type.name, `${message}: ${CONSEQUENCE}`));
  const pass = async (): Promise<SectionPass> => {
    section ??= await open();
    return await section.pass();
  };
  const loop: ReconcileLoop = startReconcileLoop({
    pass: async () => {
      const long = setTimeout(() => fail(new Error(`a pass takes longer than ${LONG_PASS_MS / 1000} s`)), LONG_PASS_MS);
      const { nextPassMs, report } = await metrics.measure(pass).finally(() => clearTimeout(long));
      reporting.submit(report);
      return nextPassMs;
    },
    quietMs: QUIET_MS,
    retryMs: RETRY_MS,
    onError: (error) => {
      logger.error({ section: type.name, err: error }, 'reconcile failed; keeping current kernel state');
      fail(error);
    },
  });
  return {
    get isReady() {
      return section ? (section.isReady ?? true) : type.isEssential !== true;
    },
    trigger: () => loop.trigger(),
    async stop() {
      await loop.stop();
      await section?.stop();
    },
  };
};
