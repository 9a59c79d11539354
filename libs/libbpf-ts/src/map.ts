import type { BpfMap, Codec, MapInfo, PerCpuMap, UpdateMode } from './api.port.ts';
import { attempt, batchError } from './bpf-error.ts';
import { addon, type Handle } from './native.ts';

const FLAGS: Readonly<Record<UpdateMode, number>> = { any: 0, noexist: 1, exist: 2 };
const PAGE = 1024;
/** The kernel's batch commands are missing for some map types and old kernels: then entries go one by one. */
const [ENOENT, ENOSPC, EINVAL, EOPNOTSUPP, ENOTSUPP] = [2, 28, 22, 95, 524];
const noBatch = (errno: number): boolean => errno === EOPNOTSUPP || errno === ENOTSUPP || errno === EINVAL;
const PER_CPU_TYPES = new Set([5, 6, 10, 21]);

/** The kernel cuts names at 15 characters: the object file knows the whole one. */
export const infoOf = (handle: Handle): MapInfo => {
  const { id, name, type, keySize, valueSize, maxEntries, flags } = addon().handleInfo(handle);
  return { id, name, type, keySize, valueSize, maxEntries, flags };
};

const checkLayout = (info: MapInfo, key: Codec<unknown>, value: Codec<unknown>): void => {
  if (info.keySize === key.size && info.valueSize === value.size) return;
  throw new TypeError(
    `map ${info.name}: keys of ${info.keySize} and values of ${info.valueSize} bytes, the codecs have ${key.size} and ${value.size}`,
  );
};

class Scratch<T> {
  readonly bytes: Uint8Array;
  readonly #codec: Codec<T>;
  readonly #view: DataView;

  constructor(codec: Codec<T>, count = 1) {
    this.bytes = new Uint8Array(codec.size * count);
    this.#view = new DataView(this.bytes.buffer);
    this.#codec = codec;
  }

  write(value: T, index = 0): Uint8Array {
    this.#codec.write(value, this.#view, index * this.#codec.size);
    return this.bytes;
  }

  read(index = 0): T {
    return this.#codec.read(this.#view, index * this.#codec.size);
  }
}

/** Every key, by the kernel's own order. A key that is deleted meanwhile starts the walk over: give up after `limit`. */
function* keysOneByOne<K>(handle: Handle, codec: Codec<K>, limit: number): Generator<Scratch<K>> {
  let [current, next] = [new Scratch(codec), new Scratch(codec)];
  let key: Uint8Array | null = null;
  for (let seen = 0; seen < limit && addon().mapNextKey(handle, key, next.bytes); seen++) {
    yield next;
    [current, next] = [next, current];
    key = current.bytes;
  }
}

class TypedMap<K, V> implements BpfMap<K, V> {
  readonly #handle: Handle;
  readonly #keyCodec: Codec<K>;
  readonly #valueCodec: Codec<V>;
  readonly #key: Scratch<K>;
  readonly #value: Scratch<V>;
  readonly info: MapInfo;

  constructor(handle: Handle, key: Codec<K>, value: Codec<V>) {
    this.info = infoOf(handle);
    checkLayout(this.info, key, value);
    if (PER_CPU_TYPES.has(this.info.type))
      throw new TypeError(`map ${this.info.name} has a value for each CPU: open it as a per-CPU map`);
    this.#handle = handle;
    this.#keyCodec = key;
    this.#valueCodec = value;
    this.#key = new Scratch(key);
    this.#value = new Scratch(value);
  }

  get(key: K): V | undefined {
    const found = attempt(`map ${this.info.name}`, () =>
      addon().mapLookup(this.#handle, this.#key.write(key), this.#value.bytes),
    );
    return found ? this.#value.read() : undefined;
  }

  set(key: K, value: V, mode: UpdateMode = 'any'): void {
    attempt(`map ${this.info.name}`, () =>
      addon().mapUpdate(this.#handle, this.#key.write(key), this.#value.write(value), FLAGS[mode]),
    );
  }

  delete(key: K): boolean {
    return attempt(`map ${this.info.name}`, () => addon().mapDelete(this.#handle, this.#key.write(key)));
  }

  setMany(entries: readonly (readonly [K, V])[], mode: UpdateMode = 'any'): void {
    if (entries.length === 0) return;
    const [keys, values] = [new Scratch(this.#keyCodec, entries.length), new Scratch(this.#valueCodec, entries.length)];
    for (let index = 0; index < entries.length; index++) {
      const entry = entries[index] as readonly [K, V];
      keys.write(entry[0], index);
      values.write(entry[1], index);
    }
    const [errno, done] = addon().mapUpdateBatch(this.#handle, keys.bytes, values.bytes, entries.length, FLAGS[mode]);
    if (errno === 0) return;
    if (!noBatch(errno)) throw batchError(`update map ${this.info.name}`, errno, done);
    for (const [key, value] of entries) this.set(key, value, mode);
  }

  deleteMany(keys: readonly K[]): number {
    let deleted = 0;
    for (let start = 0; start < keys.length;) {
      const rest = keys.slice(start);
      const bytes = new Scratch(this.#keyCodec, rest.length);
      for (const [index, key] of rest.entries()) bytes.write(key, index);
      const [errno, done] = addon().mapDeleteBatch(this.#handle, bytes.bytes, rest.length);
      if (noBatch(errno) && done === 0) return deleted + rest.filter((key) => this.delete(key)).length;
      if (errno !== 0 && errno !== ENOENT) throw batchError(`delete from map ${this.info.name}`, errno, deleted + done);
      deleted += done;
      start += done + 1; // a batch stops at a key that is not there: go on behind it
      if (errno === 0) break;
    }
    return deleted;
  }

  *entries(): Generator<[K, V]> {
    const [keys, values] = [new Scratch(this.#keyCodec, PAGE), new Scratch(this.#valueCodec, PAGE)];
    for (const count of this.#pages(keys.bytes, values.bytes)) {
      if (count === undefined) yield* this.#entriesOneByOne();
      else for (let index = 0; index < count; index++) yield [keys.read(index), values.read(index)];
    }
  }

  count(): number {
    const [keys, values] = [new Scratch(this.#keyCodec, PAGE), new Scratch(this.#valueCodec, PAGE)];
    let sum = 0;
    for (const count of this.#pages(keys.bytes, values.bytes))
      sum += count ?? [...keysOneByOne(this.#handle, this.#keyCodec, 2 * this.info.maxEntries)].length;
    return sum;
  }

  /** Fills the buffers page by page, and says how many entries each has; undefined: the kernel has no batches for this map. */
  *#pages(keys: Uint8Array, values: Uint8Array): Generator<number | undefined> {
    const cursorBytes = Math.max(8, this.info.keySize);
    let [cursor, next]: [Uint8Array | null, Uint8Array] = [null, new Uint8Array(cursorBytes)];
    for (;;) {
      const [errno, count] = addon().mapLookupBatch(this.#handle, cursor, next, keys, values, PAGE);
      if (cursor === null && (noBatch(errno) || errno === ENOSPC)) {
        yield undefined;
        return;
      }
      if (errno !== 0 && errno !== ENOENT) throw batchError(`list map ${this.info.name}`, errno, count);
      yield count;
      if (errno === ENOENT) return;
      [cursor, next] = [next, cursor ?? new Uint8Array(cursorBytes)];
    }
  }

  *#entriesOneByOne(): Generator<[K, V]> {
    for (const key of keysOneByOne(this.#handle, this.#keyCodec, 2 * this.info.maxEntries)) {
      if (addon().mapLookup(this.#handle, key.bytes, this.#value.bytes)) yield [key.read(), this.#value.read()];
    }
  }

  pin(path: string): void {
    attempt(`pin map ${this.info.name} at ${path}`, () => addon().pinHandle(this.#handle, path));
  }

  close(): void {
    addon().closeHandle(this.#handle);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

class TypedPerCpuMap<K, V> implements PerCpuMap<K, V> {
  readonly #handle: Handle;
  readonly #keyCodec: Codec<K>;
  readonly #valueCodec: Codec<V>;
  readonly #key: Scratch<K>;
  readonly #values: Uint8Array;
  readonly #stride: number;
  readonly info: MapInfo;

  constructor(handle: Handle, key: Codec<K>, value: Codec<V>) {
    this.info = infoOf(handle);
    checkLayout(this.info, key, value);
    if (!PER_CPU_TYPES.has(this.info.type))
      throw new TypeError(`map ${this.info.name} has one value for all CPUs: open it as a map`);
    this.#handle = handle;
    this.#keyCodec = key;
    this.#valueCodec = value;
    this.#key = new Scratch(key);
    this.#stride = (value.size + 7) & ~7; // the kernel rounds every CPU's value up to 8 bytes
    this.#values = new Uint8Array(this.#stride * addon().possibleCpus());
  }

  get(key: K): V[] | undefined {
    return this.#read(this.#key.write(key));
  }

  setAll(key: K, value: V): void {
    const bytes = new Uint8Array(this.#values.length);
    for (let at = 0; at < bytes.length; at += this.#stride)
      this.#valueCodec.write(value, new DataView(bytes.buffer), at);
    attempt(`map ${this.info.name}`, () => addon().mapUpdate(this.#handle, this.#key.write(key), bytes, FLAGS.any));
  }

  delete(key: K): boolean {
    return attempt(`map ${this.info.name}`, () => addon().mapDelete(this.#handle, this.#key.write(key)));
  }

  #read(key: Uint8Array): V[] | undefined {
    if (!attempt(`map ${this.info.name}`, () => addon().mapLookup(this.#handle, key, this.#values))) return undefined;
    const view = new DataView(this.#values.buffer);
    return Array.from({ length: this.#values.length / this.#stride }, (_, cpu) =>
      this.#valueCodec.read(view, cpu * this.#stride),
    );
  }

  *entries(): Generator<[K, V[]]> {
    for (const key of keysOneByOne(this.#handle, this.#keyCodec, 2 * this.info.maxEntries)) {
      const values = this.#read(key.bytes);
      if (values) yield [key.read(), values];
    }
  }

  pin(path: string): void {
    attempt(`pin map ${this.info.name} at ${path}`, () => addon().pinHandle(this.#handle, path));
  }

  close(): void {
    addon().closeHandle(this.#handle);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** @throws TypeError when the codecs are not of the map's sizes */
export const typedMap = <K, V>(handle: Handle, key: Codec<K>, value: Codec<V>): BpfMap<K, V> =>
  new TypedMap(handle, key, value);

/** @throws TypeError when the codecs are not of the map's sizes, or the map is not per CPU */
export const typedPerCpuMap = <K, V>(handle: Handle, key: Codec<K>, value: Codec<V>): PerCpuMap<K, V> =>
  new TypedPerCpuMap(handle, key, value);
