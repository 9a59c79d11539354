import { type EgressNodeSlice, type EgressNodeSliceSpec, GROUP_VERSION, sameJson } from '@unbounded/crds';
import type { planSliceChanges } from '@unbounded/egress';
import { isConflict, isNotFound, type ResourceClient } from '@unbounded/kube';

type SliceChange = ReturnType<typeof planSliceChanges>[number];

export interface SliceWriteOptions {
  readonly client: ResourceClient<EgressNodeSlice>;
  /** Called before each write. */
  readonly pace: (signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
  readonly onWritten: () => void;
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
 * Whether a plan from before is as safe now: the spec is what it was, and the agent still confirms every release that it confirmed.
 * What agents report beyond that is for the next plan; they do so after every write, and would end most rounds.
 */
const isStillValid = (known: EgressNodeSlice, now: EgressNodeSlice): boolean =>
  now.metadata.uid === known.metadata.uid &&
  sameJson(now.spec, known.spec) &&
  (known.status?.released ?? []).every((grant) => (now.status?.released ?? []).some((own) => sameJson(own, grant)));

/** The slice as it is now, if it differs from what it was in new reports of its agent alone. */
const reportedSince = async (
  known: EgressNodeSlice,
  { client, signal }: SliceWriteOptions,
): Promise<EgressNodeSlice | undefined> => {
  try {
    const now = await client.get(known.metadata.name, { signal });
    return isStillValid(known, now) ? now : undefined;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
};

/** One change, on top of the version that the plan was made from, or of one that differs from it in reports of the agent alone. */
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
      if (!isConflict(error) || !known || reports >= MAX_REPORTS) throw error;
      known = await reportedSince(known, options);
      if (!known) throw error;
    }
  }
};

/** All changes in their order; the first that fails ends it, so that an address gets an owner only after the former one lost it. */
export const writeSlices = async (
  changes: readonly SliceChange[],
  former: readonly EgressNodeSlice[],
  options: SliceWriteOptions,
): Promise<void> => {
  const known = new Map(former.map((slice) => [slice.metadata.name, slice]));
  for (const change of changes) {
    const written = await write(change, known.get(change.name), options);
    if (written) known.set(change.name, written);
    else known.delete(change.name);
    options.onWritten();
  }
};
