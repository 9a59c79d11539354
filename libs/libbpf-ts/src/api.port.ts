/** Fixed-size binary layout of a map's key or value (structurally the codec of @unbounded/bpf-maps). */
export interface Codec<T> {
  readonly size: number;
  write(value: T, view: DataView, offset: number): void;
  read(view: DataView, offset: number): T;
}

/** What is known of a map (struct bpf_map_info). */
export interface MapInfo {
  readonly id: number;
  /** At most 15 characters: the kernel cuts names. */
  readonly name: string;
  /** BPF_MAP_TYPE_* number. */
  readonly type: number;
  readonly keySize: number;
  readonly valueSize: number;
  readonly maxEntries: number;
  readonly flags: number;
}

export interface ProgramInfo {
  readonly id: number;
  readonly name: string;
  /** BPF_PROG_TYPE_* number; 3 is SCHED_CLS. */
  readonly type: number;
  /** 16 hex digits: a hash of the instructions, the same for the same code. */
  readonly tag: string;
  readonly mapIds: readonly number[];
  readonly verifiedInstructions: number;
}

export interface LinkInfo {
  readonly id: number;
  /** BPF_LINK_TYPE_* number; 11 is TCX. */
  readonly type: number;
  readonly programId: number;
  readonly ifindex?: number;
  readonly direction?: Direction;
}

export type Direction = 'ingress' | 'egress';

/** ANY creates or overwrites, NOEXIST only creates (EEXIST), EXIST only overwrites (ENOENT). */
export type UpdateMode = 'any' | 'noexist' | 'exist';

/** A map with typed keys and values. Closing it lets go of the handle only; the map lives on while it is pinned or used. */
export interface BpfMap<K, V> extends Disposable {
  readonly info: MapInfo;
  get(key: K): V | undefined;
  /** @throws BpfError E2BIG when the map is full */
  set(key: K, value: V, mode?: UpdateMode): void;
  /** false when it was not there. */
  delete(key: K): boolean;
  /** In as few system calls as the kernel allows. @throws BpfError whose `done` says how many were written */
  setMany(entries: readonly (readonly [K, V])[], mode?: UpdateMode): void;
  /** Number that were there. */
  deleteMany(keys: readonly K[]): number;
  /** Every entry; an entry changed meanwhile may be seen or not. Array maps yield every slot. */
  entries(): IterableIterator<[K, V]>;
  /** How many entries there are; an array map has as many as slots. */
  count(): number;
  pin(path: string): void;
  close(): void;
}

/** A per-CPU map: a value for each possible CPU. */
export interface PerCpuMap<K, V> extends Disposable {
  readonly info: MapInfo;
  get(key: K): V[] | undefined;
  entries(): IterableIterator<[K, V[]]>;
  /** Gives every CPU that value. @throws BpfError E2BIG: no room */
  setAll(key: K, value: V): void;
  /** False when there was none. */
  delete(key: K): boolean;
  pin(path: string): void;
  close(): void;
}

export interface TestRun {
  /** Packet; for tc programs it begins with the Ethernet header (or the IP header with an L3 context). */
  readonly data?: Uint8Array;
  /** struct __sk_buff (or the program's own context) in. */
  readonly context?: Uint8Array;
  /** Runs, default one; each sees the packet as the one before left it. */
  readonly repeat?: number;
}
export interface TestRunResult {
  readonly returnValue: number;
  readonly data: Uint8Array;
  readonly context: Uint8Array;
  /** Of one run: the mean where it was repeated. */
  readonly nanoseconds: number;
}

export interface BpfProgram extends Disposable {
  readonly info: ProgramInfo;
  testRun(input: TestRun): TestRunResult;
  pin(path: string): void;
  close(): void;
}

/** A tcx attachment. Unless it is pinned it ends when the last handle is closed, or collected as garbage: hold it. */
export interface BpfLink extends Disposable {
  readonly info: LinkInfo;
  /** Swaps the program without a packet in between seeing none. */
  update(program: BpfProgram): void;
  pin(path: string): void;
  /** Ends the attachment now, pinned or not. */
  detach(): void;
  close(): void;
}

/** How a program was attached. */
export type Attachment =
  | { readonly via: 'tcx'; readonly link: BpfLink }
  | { readonly via: 'clsact'; readonly handle: number; readonly priority: number };

export interface LoadOptions {
  /** Shown in `bpftool`; at most 15 characters. */
  readonly name?: string;
  readonly maps?: Readonly<Record<string, MapOptions>>;
  /** Values of `const volatile` globals by variable name; sizes are checked against BTF. */
  readonly constants?: Readonly<Record<string, number | bigint | Uint8Array>>;
  /** Only these programs are loaded; default all. */
  readonly programs?: readonly string[];
}
export interface MapOptions {
  readonly maxEntries?: number;
  /** Used again if it exists with the same layout, else created and pinned there. */
  readonly pinPath?: string;
}

/** What an object file declares, without the kernel. */
export interface ObjectSpec {
  readonly maps: readonly {
    readonly name: string;
    readonly type: number;
    readonly keySize: number;
    readonly valueSize: number;
    readonly maxEntries: number;
    readonly flags: number;
  }[];
  readonly programs: readonly { readonly name: string; readonly section: string }[];
}

/** A loaded object. Closing it closes its own handles; pinned maps and attached programs stay. */
export interface BpfObject extends Disposable {
  readonly spec: ObjectSpec;
  /** @throws TypeError when the codecs' sizes are not the map's (or BTF's) sizes, or there is no such map */
  map<K, V>(name: string, key: Codec<K>, value: Codec<V>): BpfMap<K, V>;
  perCpuMap<K, V>(name: string, key: Codec<K>, value: Codec<V>): PerCpuMap<K, V>;
  program(name: string): BpfProgram;
  ringBuffer(map: string, onRecords: (records: readonly Uint8Array[]) => void): RingBuffer;
  close(): void;
}

export interface RingBuffer extends Disposable {
  /** Drains now, instead of at the next turn of the loop. */
  consume(): void;
  unref(): void;
  close(): void;
}

/** yes, no with the kernel that brought it, or unknown (no permission, a seccomp filter, …). */
export type Probe =
  | { readonly supported: 'yes' }
  | { readonly supported: 'no'; readonly since: string }
  | { readonly supported: 'unknown'; readonly reason: string };
