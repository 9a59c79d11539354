import type { HostPart } from '@unbounded/host';
import { composeView, type ViewInputs } from '@unbounded/status';
import type { Logger } from '@unbounded/telemetry';
import type { HeldReports, ReportClocks } from '../reports/held-reports.ts';
import type { ViewHistory } from './view-history.ts';

/** Clients get an update at most so often. */
const COMPOSE_EVERY_MS = 3000;

export interface ViewComposerOptions extends Pick<ReportClocks, 'now'> {
  /** Undefined until the objects of the cluster have been read once: a view without them would tell of nodes that are gone. */
  readonly objects: () => Omit<ViewInputs, 'reports'> | undefined;
  readonly reports: Pick<HeldReports, 'received' | 'forget'>;
  readonly history: ViewHistory;
  readonly logger: Logger;
  readonly everyMs?: number;
}

export interface ViewComposer extends HostPart {
  /** What a reader should know of the view: that it stands still. */
  notices(): readonly string[];
}

const NOT_RENEWED = 'the view stands as it was: none can be made; the log of status-aggregator has the reason';

/** Composes the view again and again, as a part of the host. */
export const createViewComposer = (options: ViewComposerOptions): ViewComposer => {
  const { objects, reports, history, now, logger, everyMs = COMPOSE_EVERY_MS } = options;
  let timer: NodeJS.Timeout | undefined;
  const compose = (): void => {
    const inputs = objects();
    if (!inputs) return;
    const names = new Set(inputs.nodes.map(({ name }) => name));
    reports.forget((name) => names.has(name));
    history.append(
      composeView({ ...inputs, reports: reports.received() }, history.current()?.view, now().toISOString()),
    );
  };
  let hasFailed = false;
  const composeSafely = (): void => {
    try {
      compose();
      hasFailed = false;
    } catch (error) {
      hasFailed = true;
      logger.error({ err: error }, 'cannot compose the view; the previous one stands');
    }
  };
  return {
    name: 'view',
    get isReady() {
      return history.current() !== undefined;
    },
    notices: () => (hasFailed ? [NOT_RENEWED] : []),
    start() {
      composeSafely();
      timer = setInterval(composeSafely, everyMs);
    },
    stop: () => clearInterval(timer),
  };
};
