import { type EgressNodeSlice, type EgressNodeSliceSpec, type OwnedAddress, sameJson } from '@unbounded/crds';

/** One write of a slice: without a spec it is deleted. */
export interface SliceChange {
  readonly name: string;
  readonly spec: EgressNodeSliceSpec | undefined;
}

const isGranted = (entry: OwnedAddress | undefined): boolean => entry !== undefined && entry.release !== true;

/** A slice that is to be, without addresses that it did not own before: what it was to release of these it still is. */
const withoutGains = (
  before: EgressNodeSliceSpec | undefined,
  after: EgressNodeSliceSpec,
  isGain: (address: string) => boolean = () => true,
): EgressNodeSliceSpec => {
  const former = new Map((before?.owned ?? []).map((entry) => [entry.address, entry]));
  const owned = (after.owned ?? []).flatMap((entry) => {
    const own = former.get(entry.address);
    return isGranted(entry) && !isGranted(own) && isGain(entry.address) ? (own ?? []) : entry;
  });
  if (sameJson(owned, after.owned ?? [])) return after;
  const { owned: _, ...rest } = after;
  return owned.length === 0 ? rest : { ...rest, owned };
};

/**
 * What of a change can be written while a slice that has these addresses could not be: all but the gain of one of them, which could
 * give it a second owner. The very change, if it gains none.
 */
export const withoutGainsOf = (
  addresses: ReadonlySet<string>,
  change: SliceChange,
  before: EgressNodeSliceSpec | undefined,
): SliceChange => {
  if (!change.spec) return change;
  const spec = withoutGains(before, change.spec, (address) => addresses.has(address));
  return spec === change.spec ? change : { ...change, spec };
};

/**
 * The writes that lead to the wanted slices, none at rest. They must be made in this order, each only after the one before has
 * succeeded, and with the resourceVersion that the plan was made from: where an address ends comes before where it begins, so that
 * a controller that stops in between leaves it without an owner.
 */
export const planSliceChanges = (
  former: readonly EgressNodeSlice[],
  wanted: ReadonlyMap<string, EgressNodeSliceSpec>,
): readonly SliceChange[] => {
  const specs = new Map(former.map(({ metadata, spec }) => [metadata.name, spec]));
  const changes = [...new Set([...specs.keys(), ...wanted.keys()])]
    .toSorted()
    .filter((name) => !sameJson(specs.get(name), wanted.get(name)))
    .map((name) => ({ name, spec: wanted.get(name) }));
  // A slice can give one address up and gain another: it is written twice, first with what it gains as it was before.
  const endsOf = ({ name, spec }: SliceChange): SliceChange => ({
    name,
    spec: spec && withoutGains(specs.get(name), spec),
  });
  const ends = changes.map(endsOf);
  const begins = changes.filter((change, index) => !sameJson(ends[index]!.spec, change.spec));
  return [...ends.filter(({ name, spec }) => !sameJson(specs.get(name), spec)), ...begins];
};
