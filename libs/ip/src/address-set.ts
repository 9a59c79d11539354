import { type Address, addressBits, type Family } from './address.ts';
import { comparePrefixes, lastAddress, type Prefix } from './prefix.ts';

/** Addresses `from`..`to`, both included. */
interface Interval {
  readonly from: bigint;
  readonly to: bigint;
}

const intervalOf = (prefix: Prefix): Interval => ({ from: prefix.address, to: lastAddress(prefix).value });

/** Sorted, disjoint and not adjacent. */
const normalize = (intervals: readonly Interval[]): Interval[] => {
  const merged: Interval[] = [];
  for (const next of intervals.toSorted((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0))) {
    const last = merged.at(-1);
    if (last && next.from <= last.to + 1n) {
      if (next.to > last.to) merged[merged.length - 1] = { from: last.from, to: next.to };
    } else merged.push(next);
  }
  return merged;
};

const subtractOne = (intervals: readonly Interval[], cut: Interval): Interval[] =>
  intervals.flatMap((interval) => {
    if (cut.to < interval.from || cut.from > interval.to) return [interval];
    const rest: Interval[] = [];
    if (interval.from < cut.from) rest.push({ from: interval.from, to: cut.from - 1n });
    if (cut.to < interval.to) rest.push({ from: cut.to + 1n, to: interval.to });
    return rest;
  });

/** The largest aligned block that starts at `from` and does not pass `to`. */
const blockAt = (family: Family, from: bigint, to: bigint): Prefix => {
  let free = 0;
  while (free < addressBits(family)) {
    const size = 1n << BigInt(free + 1);
    if (from % size !== 0n || from + size - 1n > to) break;
    free++;
  }
  return { family, address: from, length: addressBits(family) - free };
};

/** An immutable set of addresses of both families, kept as disjoint intervals: O(log n) to ask, no address is listed. */
export class AddressSet {
  readonly #v4: readonly Interval[];
  readonly #v6: readonly Interval[];

  private constructor(v4: readonly Interval[], v6: readonly Interval[]) {
    this.#v4 = v4;
    this.#v6 = v6;
  }

  static readonly empty: AddressSet = new AddressSet([], []);

  static of(prefixes: Iterable<Prefix>): AddressSet {
    const all = [...prefixes];
    const family = (wanted: Family) => normalize(all.filter((p) => p.family === wanted).map(intervalOf));
    return new AddressSet(family(4), family(6));
  }

  /** Addresses whose longest prefix is one of `inside`; of prefixes of one length those `outside` win. */
  static byLongestPrefix(inside: readonly Prefix[], outside: readonly Prefix[]): AddressSet {
    const ofLength = (prefixes: readonly Prefix[], wanted: number): AddressSet =>
      AddressSet.of(prefixes.filter(({ length }) => length === wanted));
    const lengths = [...new Set([...inside, ...outside].map(({ length }) => length))].sort((a, b) => a - b);
    return lengths.reduce(
      (decided, length) => decided.union(ofLength(inside, length)).subtract(ofLength(outside, length)),
      AddressSet.empty,
    );
  }

  /** The addresses from the first to the last, both included. @throws RangeError for two families, or a last one below the first */
  static between(first: Address, last: Address): AddressSet {
    if (first.family !== last.family || last.value < first.value) {
      throw new RangeError('a range must go from an address to one of the same family that is not below it');
    }
    return AddressSet.empty.#with(first.family, [{ from: first.value, to: last.value }]);
  }

  #intervals(family: Family): readonly Interval[] {
    return family === 4 ? this.#v4 : this.#v6;
  }

  #with(family: Family, intervals: readonly Interval[]): AddressSet {
    return family === 4 ? new AddressSet(intervals, this.#v6) : new AddressSet(this.#v4, intervals);
  }

  /** Index of the first interval that ends at or after `value`. */
  #firstEndingFrom(family: Family, value: bigint): number {
    const intervals = this.#intervals(family);
    let [low, high] = [0, intervals.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (intervals[middle]!.to < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  get isEmpty(): boolean {
    return this.#v4.length === 0 && this.#v6.length === 0;
  }

  has({ family, value }: Address): boolean {
    const interval = this.#intervals(family)[this.#firstEndingFrom(family, value)];
    return interval !== undefined && interval.from <= value;
  }

  /** Whether any address of the prefix is in the set. */
  overlaps(prefix: Prefix): boolean {
    const interval = this.#intervals(prefix.family)[this.#firstEndingFrom(prefix.family, prefix.address)];
    return interval !== undefined && interval.from <= lastAddress(prefix).value;
  }

  /** Whether every address of the prefix is in the set. */
  covers(prefix: Prefix): boolean {
    const interval = this.#intervals(prefix.family)[this.#firstEndingFrom(prefix.family, prefix.address)];
    return interval !== undefined && interval.from <= prefix.address && interval.to >= lastAddress(prefix).value;
  }

  add(prefix: Prefix): AddressSet {
    return this.#with(prefix.family, normalize([...this.#intervals(prefix.family), intervalOf(prefix)]));
  }

  remove(prefix: Prefix): AddressSet {
    return this.#with(prefix.family, subtractOne(this.#intervals(prefix.family), intervalOf(prefix)));
  }

  union(other: AddressSet): AddressSet {
    return new AddressSet(normalize([...this.#v4, ...other.#v4]), normalize([...this.#v6, ...other.#v6]));
  }

  subtract(other: AddressSet): AddressSet {
    return new AddressSet(other.#v4.reduce(subtractOne, [...this.#v4]), other.#v6.reduce(subtractOne, [...this.#v6]));
  }

  /** The fewest prefixes that make up the set, in order. */
  toPrefixes(): Prefix[] {
    const prefixes: Prefix[] = [];
    for (const family of [4, 6] as const) {
      for (const { from, to } of this.#intervals(family)) {
        for (let at = from; at <= to;) {
          const block = blockAt(family, at, to);
          prefixes.push(block);
          at = lastAddress(block).value + 1n;
        }
      }
    }
    return prefixes.sort(comparePrefixes);
  }

  /**
   * The lowest block of `length` bits inside `pool` of which no address is in this set; undefined when there is none.
   * @throws RangeError when the block would be larger than the pool
   */
  firstFreeBlock(pool: Prefix, length: number): Prefix | undefined {
    const { family } = pool;
    if (length < pool.length || length > addressBits(family)) {
      throw new RangeError(`a /${length} block does not fit a /${pool.length} pool of IPv${family}`);
    }
    const size = 1n << BigInt(addressBits(family) - length);
    const end = lastAddress(pool).value;
    const taken = this.#intervals(family);
    let at = pool.address;
    for (let index = this.#firstEndingFrom(family, at); at + size - 1n <= end; index++) {
      const next = taken[index];
      if (!next || next.from > at + size - 1n) return { family, address: at, length };
      at = (next.to / size + 1n) * size; // the next aligned place behind the taken interval
      // More taken intervals may end before that place; they are passed one by one, each once.
      while (taken[index + 1] !== undefined && taken[index + 1]!.to < at) index++;
    }
    return undefined;
  }
}
