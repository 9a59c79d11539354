import { isDeepStrictEqual } from 'node:util';
import { type EgressNodeSlice, egressNodeSliceKind } from '@unbounded/crds';
import { type Cluster, clientOf, isNotFound } from '@unbounded/kube';
import type { AttachedNetwork } from './addresses.ts';

/** What the node confirms in the status of its slices: who owns an address is decided by what is written here. */

type Status = NonNullable<EgressNodeSlice['status']>;

interface Confirmed {
  /** The slices that the kernel enforces, as they were read. */
  readonly slices: readonly EgressNodeSlice[];
  /** Everything that they ask for is in force. */
  readonly isInForce: boolean;
  readonly held: ReadonlySet<string>;
  /** Addresses that are on a device still, and that the node is not to have any more. */
  readonly staying: ReadonlySet<string>;
  readonly networks: readonly AttachedNetwork[];
}

/** The controller takes an agent for dead after 15 s without a change of it. */
const HEARTBEAT_MS = 5000;

const MAX_NETWORKS = 64;

/**
 * What is to be written of one slice. Of one whose content is not wholly in force nothing new is held. What is released is, whatever else fails:
 * its right was taken out of the kernel before, and another node waits for it.
 */
export const statusOf = (
  slice: EgressNodeSlice,
  { isInForce, held, staying, networks }: Confirmed,
  nowMs: number,
): Status => {
  const { metadata, spec, status } = slice;
  const isThere = (address: string): boolean => held.has(address) || staying.has(address);
  const grants = (isRelease: boolean) =>
    (spec.owned ?? [])
      .filter(({ release = false }) => release === isRelease)
      .filter(({ address }) => (isRelease ? !isThere(address) : held.has(address)))
      .map(({ address, epoch }) => ({ address, epoch }));
  const released = grants(true);
  const isReleased = ({ address, epoch }: { readonly address: string; readonly epoch: number }): boolean =>
    released.some((grant) => grant.address === address && grant.epoch === epoch);
  const confirmed = isInForce
    ? {
        ...(metadata.generation !== undefined && { observedGeneration: metadata.generation }),
        held: grants(false),
      }
    : {
        ...(status?.observedGeneration !== undefined && { observedGeneration: status.observedGeneration }),
        held: (status?.held ?? []).filter((grant) => !isReleased(grant)),
      };
  return {
    ...confirmed,
    released,
    ...(spec.index === 0 && {
      heartbeat: Math.floor(nowMs / HEARTBEAT_MS),
      subnets: networks.slice(0, MAX_NETWORKS),
    }),
  };
};

interface Written {
  readonly text: string;
  /** The version of the slice that it was made from. */
  readonly over: string | undefined;
}

/** Whether it was written, and nobody has taken it away since: the slice is the one that it was made from, or has it. */
const stands = (
  last: Written | undefined,
  { metadata, status: seen }: EgressNodeSlice,
  wanted: { readonly text: string; readonly status: Status },
): boolean =>
  last?.text === wanted.text &&
  (last.over === metadata.resourceVersion ||
    Object.entries(wanted.status).every(([field, value]) => isDeepStrictEqual(seen?.[field as keyof Status], value)));

export interface SliceReports {
  /** Writes what has changed. @throws ApiError, TransportError */
  write(confirmed: Confirmed, signal: AbortSignal): Promise<void>;
}

/**
 * @param onHeard a write has reached the API server
 * @param now milliseconds, which no step of the wall clock changes
 */
export const createSliceReports = (
  cluster: Cluster,
  onHeard: () => void,
  now: () => number = () => performance.now(),
): SliceReports => {
  const client = clientOf(cluster, egressNodeSliceKind);
  /** What was written last, and of which version of the slice that was, by its name. */
  const written = new Map<string, Written>();
  return {
    async write(confirmed, signal) {
      for (const slice of confirmed.slices) {
        const { name, uid } = slice.metadata;
        const status = statusOf(slice, confirmed, now());
        const text = JSON.stringify([uid, status]);
        if (stands(written.get(name), slice, { text, status })) continue;
        try {
          await client.mergePatch(name, { metadata: { uid }, status }, { subresource: 'status', signal });
          written.set(name, { text, over: slice.metadata.resourceVersion });
          onHeard();
        } catch (error) {
          if (!isNotFound(error)) throw error; // deleted since
        }
      }
    },
  };
};
