import type { TailnetDevice } from '@unbounded/crds';
import type { Metrics } from '@unbounded/telemetry';

import { TailnetApiError } from './api/api-error.ts';
import type { ApiOperation, ApiOutcome } from './api/tailnet-api.ts';

export interface RegistrarMetrics {
  observed(records: readonly TailnetDevice[]): void;
  called(operation: ApiOperation, outcome: ApiOutcome): void;
  keyGiven(): void;
}

const PREFIX = 'unbounded_tailnet';

const resultOf = ({ error }: ApiOutcome): string => {
  if (!error) return 'Success';
  return error instanceof TailnetApiError ? error.failure : error.name;
};

export const registrarMetrics = (metrics: Metrics): RegistrarMetrics => {
  const devices = metrics.gauge({
    name: `${PREFIX}_devices`,
    help: 'TailnetDevices by the state that their nodes report; Unknown: none yet.',
    labels: ['state'],
  });
  const pending = metrics.gauge({
    name: `${PREFIX}_pending_deletions`,
    help: 'TailnetDevices that are being deleted and whose device may still be in the tailnet.',
  });
  const keys = metrics.counter({
    name: `${PREFIX}_keys_given_total`,
    help: 'Keys that nodes were given to log a device in.',
  });
  const calls = metrics.counter({
    name: `${PREFIX}_api_calls_total`,
    help: 'Requests to the REST API of the control server, by operation and result.',
    labels: ['operation', 'result'],
  });
  const seconds = metrics.histogram({
    name: `${PREFIX}_api_call_seconds`,
    help: 'Duration of requests to the REST API of the control server, with the wait for their turn.',
    labels: ['operation'],
  });
  return {
    observed: (records) => {
      devices.reset();
      for (const { status } of records) devices.inc({ state: status?.state ?? 'Unknown' });
      pending.set(records.filter(({ metadata }) => metadata.deletionTimestamp !== undefined).length);
    },
    called: (operation, outcome) => {
      calls.inc({ operation, result: resultOf(outcome) });
      seconds.observe({ operation }, outcome.ms / 1000);
    },
    keyGiven: () => keys.inc(),
  };
};
