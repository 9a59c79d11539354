import type { ObjectWrites } from '@unbounded/controller-runtime';
import { type EgressNodeSlice, type EgressNodeSliceSpec, GROUP_VERSION, sameJson } from '@unbounded/crds';
import { isReleaseConfirmed, type SliceChange, withoutGainsOf } from '@unbounded/egress';
import { ApiError, ignoreGone, isConflict, type ResourceClient } from '@unbounded/kube';

export interface SliceWriteOptions {
  readonly client: ResourceClient<EgressNodeSlice>;
  /** Called before each write. */
  readonly pace: (signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
  readonly onWritten: () => void;
  /** Tells of slices that are refused, and lets them rest. */
  readonly writes: ObjectWrites;
  /** Addresses that no slice may gain. */
  readonly stuck?: ReadonlySet<string>;
}

/** Reports of an agent that may be faster than one write. */
const MAX_REPORTS = 5;

const created = (name: string, spec: EgressNodeSliceSpec): EgressNodeSlice => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressNodeSlice',
  metadata: { name },
  spec,
});

const attempt = async (
  { name, spec }: SliceChange,
  known: EgressNodeSlice | undefined,
  { client, signal }: SliceWriteOptions,
): Promise<EgressNodeSlice | undefined> => {
  if (spec && !known) return client.create(created(name, spec), { signal });
  if (spec && known) return client.update({ ...known, spec }, { signal });
  const { uid, resourceVersion } = known?.metadata ?? {};
  await client.delete(name, { signal, ...(uid ? { uid } : {}), ...(resourceVersion ? { resourceVersion } : {}) });
  return undefined;
};

/**
 * The agent of one node writes its status faster than the slice is written, or takes a confirmation back on which the plan relied: what is
 * in the slice stays for now, and others do not wait for that.
 */
class UnsettledSliceError extends Error {
  override readonly name = 'UnsettledSliceError';
}

/** Of all that an agent reports a plan relies on these alone; what comes beyond that, after every write, is for the next plan. */
const confirmsAsBefore = (known: EgressNodeSlice, now: EgressNodeSlice): boolean =>
  (known.spec.owned ?? []).every(
    (owned) => !isReleaseConfirmed(owned, known.status) || isReleaseConfirmed(owned, now.status),
  );

/** The slice as it is now, if it differs from what it was in its status alone. */
const sameSlice = async (
  known: EgressNodeSlice,
  { client, signal }: SliceWriteOptions,
): Promise<EgressNodeSlice | undefined> => {
  const now = await client.get(known.metadata.name, { signal }).catch(ignoreGone);
  return now && now.metadata.uid === known.metadata.uid && sameJson(now.spec, known.spec) ? now : undefined;
};

/**
 * One change, on top of the version that the plan was made from, or of one that differs from it in reports of the agent alone.
 * @throws UnsettledSliceError, ApiError, TransportError
 */
const write = async (
  change: SliceChange,
  former: EgressNodeSlice | undefined,
  options: SliceWriteOptions,
): Promise<EgressNodeSlice | undefined> => {
  let known = former;
  for (let reports = 0; ; reports++) {
    await options.pace(options.signal);
    try {
      return await attempt(change, known, options);
    } catch (error) {
      if (!isConflict(error) || !known) throw error;
      const now = await sameSlice(known, options);
      if (!now) throw error;
      if (!confirmsAsBefore(known, now))
        throw new UnsettledSliceError('its agent no longer confirms that it released an address', { cause: error });
      if (reports >= MAX_REPORTS)
        throw new UnsettledSliceError(`its agent wrote its status ${reports + 1} times meanwhile`, { cause: error });
      known = now;
    }
  }
};

/** Between the 1.5 MiB that etcd takes and the 3 MiB of a request the API server answers 500, as if it did not work. */
const isTooLargeForEtcd = ({ status, message }: ApiError): boolean =>
  status === 500 && message.includes('request is too large');

/**
 * Says of an error whether other slices have to wait as well. They do not where the API server will never take this one as it is: by its
 * schema, a policy, its size; or where its agent leaves no moment to write it. Everything else is about the state that the plan was made
 * from (404, 409), or about the server.
 */
const isAboutOthers = (error: Error): boolean => {
  if (error instanceof UnsettledSliceError) return false;
  if (!(error instanceof ApiError)) return true;
  return !isTooLargeForEtcd(error) && (error.status >= 500 || [404, 408, 409, 410, 429].includes(error.status));
};

/** Whether the API server took it; false: it is refused, or rests because it was. */
const isTaken = async (
  change: SliceChange,
  former: EgressNodeSlice | undefined,
  options: SliceWriteOptions,
  onTaken: (slice: EgressNodeSlice | undefined) => void,
): Promise<boolean> => {
  const about = former ?? created(change.name, change.spec!);
  let taken = false;
  await options.writes.attempt(
    about,
    'the slice',
    async () => {
      onTaken(await write(change, former, options));
      taken = true;
    },
    isAboutOthers,
  );
  return taken;
};

/**
 * All changes in their order, so that an address gets an owner only after the former one lost it. An error that concerns others ends it.
 * A slice that is refused holds up nothing but the gain of addresses that it still has. Returns the slices that are refused.
 */
export const writeSlices = async (
  changes: readonly SliceChange[],
  former: readonly EgressNodeSlice[],
  options: SliceWriteOptions,
): Promise<ReadonlySet<string>> => {
  const known = new Map(former.map((slice) => [slice.metadata.name, slice]));
  const refused = new Set<string>();
  const stuck = new Set(options.stuck);
  for (const change of changes) {
    const { name } = change;
    if (refused.has(name)) continue;
    const before = known.get(name);
    const safe = withoutGainsOf(stuck, change, before?.spec);
    if (before && sameJson(before.spec, safe.spec)) continue;
    const taken = await isTaken(safe, before, options, (slice) => {
      if (slice) known.set(name, slice);
      else known.delete(name);
    });
    if (taken) {
      options.onWritten();
      continue;
    }
    refused.add(name);
    for (const { address } of before?.spec.owned ?? []) stuck.add(address);
  }
  return refused;
};
