import type { EgressNodeSlice } from '@unbounded/crds';
import { type EgressPlan, planSliceChanges } from '@unbounded/egress';
import type { ResourceClient } from '@unbounded/kube';
import type { Logger } from '@unbounded/telemetry';

import type { EgressObjects } from '../cluster/egress-objects.ts';
import type { EgressMetrics } from '../egress-metrics.ts';
import { writeSlices } from './slice-writes.ts';
import { type StatusWriteOptions, writeAllocations, writeStatuses } from './status-writes.ts';

export interface PlanWriteOptions extends Omit<StatusWriteOptions, 'signal'> {
  readonly clients: StatusWriteOptions['clients'] & { readonly slices: ResourceClient<EgressNodeSlice> };
  readonly metrics: Pick<EgressMetrics, 'sliceWritten' | 'slicesRefused'>;
  readonly logger: Logger;
}

/** What is not as planned: slices that are refused, and addresses that a pool gives but that do not stand in a status. */
interface Unwritten {
  readonly slices: ReadonlySet<string>;
  readonly addresses: ReadonlySet<string>;
}

/**
 * Says of a rule whether what its status would tell is so: not while a slice with one of its addresses or routes is not as planned. An
 * owner that stands in a status alone would count as one that has the address.
 */
const createIsWritten = (current: EgressObjects, plan: EgressPlan, unwritten: Unwritten) => {
  const specs = [
    ...current.slices.flatMap(({ metadata, spec }) => (unwritten.slices.has(metadata.name) ? spec : [])),
    ...[...unwritten.slices].flatMap((name) => plan.slices.get(name) ?? []),
  ];
  const ofSlices = specs.flatMap(({ owned = [] }) => owned.map(({ address }) => address));
  const addresses = unwritten.addresses.union(new Set(ofSlices));
  // A route names KIND/NAMESPACE/NAME/INDEX.
  const rules = new Set(
    specs.flatMap(({ routes = [] }) => routes.map(({ rule }) => rule.slice(0, rule.lastIndexOf('/')))),
  );
  return (rule: string): boolean =>
    !rules.has(rule) && !plan.ruleStatuses.get(rule)!.addresses.some(({ address }) => addresses.has(address));
};

/** Writes a plan: what pools give to rules, the slices in their order, then the statuses that are true with them. */
export const writePlan = async (
  current: EgressObjects,
  plan: EgressPlan,
  options: PlanWriteOptions & Pick<StatusWriteOptions, 'signal'>,
): Promise<void> => {
  const { clients, metrics, logger } = options;
  const { unwritten: stuck, ...allocated } = await writeAllocations(current, plan, options);
  const changes = planSliceChanges(current.slices, plan.slices);
  let written = 0;
  const onWritten = (): void => {
    written++;
    metrics.sliceWritten();
  };
  let refused: ReadonlySet<string>;
  try {
    refused = await writeSlices(changes, current.slices, { ...options, client: clients.slices, onWritten, stuck });
  } finally {
    if (changes.length > 0) logger.debug({ slices: written, of: changes.length }, 'slices written');
  }
  metrics.slicesRefused(refused.size);
  await writeStatuses({ ...current, ...allocated }, plan, {
    ...options,
    isWritten: createIsWritten(current, plan, { slices: refused, addresses: stuck }),
  });
};
