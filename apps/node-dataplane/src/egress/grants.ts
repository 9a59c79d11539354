import { type EgressNodeSlice, egressNodeSliceKind } from '@unbounded/crds';
import { addressFromBytes, formatAddress } from '@unbounded/ip';
import { type Cluster, clientOf } from '@unbounded/kube';
import { nftTableOf } from '@unbounded/config/ownership';
import type { Nftables } from '@unbounded/nftables';
import type { Logger } from '@unbounded/telemetry';
import { SETS } from './plan/names.ts';
import { grantsOf } from './plan/node.plan.ts';

/**
 * Which addresses the node may take. What an agent has watched can be older than what the API server has: before it takes an address that it
 * does not have yet, it reads the slice again, from the store itself.
 */
export type ConfirmGrants = (
  slices: readonly EgressNodeSlice[],
  held: ReadonlySet<string>,
) => Promise<ReadonlySet<string>>;

/** Pods that start and the repair of the kernel wait for it. */
const CONFIRM_WITHIN_MS = 3000;

const isSame = (a: EgressNodeSlice, b: EgressNodeSlice): boolean =>
  a.metadata.uid === b.metadata.uid && a.metadata.generation === b.metadata.generation;

/** @param onHeard the API server has answered */
export const createConfirmGrants = (
  cluster: Cluster,
  logger: Logger,
  onHeard: () => void = () => undefined,
): ConfirmGrants => {
  const client = clientOf(cluster, egressNodeSliceKind);
  return async (slices, held) => {
    const granted = new Set<string>();
    const signal = AbortSignal.timeout(CONFIRM_WITHIN_MS);
    for (const slice of slices) {
      const addresses = grantsOf(slice).map(({ address }) => address);
      const isNew = addresses.some((address) => !held.has(address));
      const isCurrent =
        !isNew ||
        (await client.get(slice.metadata.name, { signal }).then(
          (stored) => {
            onHeard();
            return isSame(stored, slice);
          },
          (error: Error) => {
            logger.warn({ slice: slice.metadata.name, error: error.message }, 'cannot read who owns egress addresses');
            return false;
          },
        ));
      for (const address of addresses) if (isCurrent || held.has(address)) granted.add(address);
    }
    return granted;
  };
};

/** Without an API server: what the files say. */
export const confirmAll: ConfirmGrants = async (slices) =>
  new Set(slices.flatMap((slice) => grantsOf(slice).map(({ address }) => address)));

/** Addresses whose right to be used an agent before this one renewed a moment ago: the time is not over yet. */
export const addressesInUse = async (nft: Nftables): Promise<ReadonlySet<string>> => {
  const tables = await Promise.all(
    (['ip', 'ip6'] as const).map((family) => nft.readTable(family, nftTableOf('egress'))),
  );
  const live = tables.flatMap((table) => table?.sets ?? []).filter(({ name }) => name === SETS.live);
  return new Set(live.flatMap(({ elements }) => elements.map(({ key }) => formatAddress(addressFromBytes(key)))));
};
