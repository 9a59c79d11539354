import type { Metrics } from '@unbounded/telemetry';

/** Which egress addresses the node answers for and sends with; those that it was given and has not (yet) are 0. */
export const createHeldAddresses = (
  metrics: Metrics,
): ((given: readonly string[], usable: ReadonlySet<string>) => void) => {
  const held = metrics.gauge({
    name: 'unbounded_egress_address_held',
    help: 'Of the egress addresses that were given to this node: 1 when it has the address and may send with it.',
    labels: ['address'],
  });
  return (given, usable) => {
    held.reset();
    for (const address of given) held.set({ address }, usable.has(address) ? 1 : 0);
  };
};
