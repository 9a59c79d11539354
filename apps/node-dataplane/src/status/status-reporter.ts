import type { Cluster } from '@unbounded/kube';
import type { Logger, Metrics } from '@unbounded/telemetry';
import type { AgentReport } from '../world/reporter.port.ts';
import { createAggregatorClient } from './aggregator-client.ts';
import { createForwardingAnswers } from './forwarding-answers.ts';
import { nodeReportOf } from './node-report.ts';
import { createPushLoop, type PushLoop } from './push-loop.ts';

/** Brings what the agent reports to the status aggregator, if there is one. */
export interface StatusReporter {
  /** The sections report something else, or the same. */
  submit(report: AgentReport): void;
  /** What sections would report is another. */
  look(): void;
  /** What tables of ours dropped. */
  dropped(reason: string, packets: number): void;
  stop(): Promise<void>;
}

export interface StatusReporterOptions {
  /** Undefined: objects come from a directory, and nobody takes reports. */
  readonly cluster: Cluster | undefined;
  /** Empty: none. */
  readonly service: string;
  readonly namespace: string;
  readonly tokenFile: string;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const NONE: StatusReporter = {
  submit: () => undefined,
  look: () => undefined,
  dropped: () => undefined,
  stop: async () => undefined,
};

export const createStatusReporter = (options: StatusReporterOptions): StatusReporter => {
  const { cluster, service, namespace, tokenFile, logger, metrics } = options;
  if (!cluster || service === '') return NONE;
  const pushes = metrics.counter({
    name: 'unbounded_status_pushes_sent_total',
    help: 'Reports sent to the status aggregator: accepted, resync (a delta from a report that it does not hold) or failed.',
    labels: ['result'],
  });
  const drops = new Map<string, number>();
  let latest: AgentReport | undefined;
  const answers = createForwardingAnswers({
    read: () => latest?.forwarding?.(),
    send: (forwarding, signal) => client.sendForwarding(forwarding, signal),
    logger,
  });
  const client = createAggregatorClient(cluster, { namespace, service, tokenFile }, (words) => {
    if (words.includes('forwarding')) answers.wanted();
  });
  let loop: PushLoop | undefined;
  return {
    submit(report) {
      latest = report;
      loop ??= createPushLoop({
        report: () => nodeReportOf(latest!, Object.fromEntries(drops)),
        send: client.send,
        onPushed: (result) => pushes.inc({ result }),
        logger,
      });
      loop.look();
    },
    look: () => loop?.look(),
    dropped: (reason, packets) => {
      if (packets > 0) drops.set(reason, (drops.get(reason) ?? 0) + packets);
    },
    async stop() {
      await Promise.all([loop?.stop(), answers.stop()]);
      client[Symbol.dispose]();
    },
  };
};
