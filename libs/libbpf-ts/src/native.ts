import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

import type { LinkInfo, MapInfo, MapOptions, ObjectSpec, ProgramInfo } from './api.port.ts';

/** A BPF descriptor of the addon. */
export type Handle = { readonly __handle: unique symbol };
type RingHandle = { readonly __ring: unique symbol };

/** `enum handle_kind` of native/handle.h. */
export const KIND = { map: 1, program: 2, link: 3 } as const;

interface Named {
  readonly name: string;
  readonly handle: Handle;
}

/** What `native/module.c` exports; the headers there say what each does. */
interface LibbpfAddon {
  readObject(
    bytes: Uint8Array,
  ): ObjectSpec & { readonly constants: readonly { readonly name: string; readonly size: number }[] };
  loadObject(
    bytes: Uint8Array,
    name: string,
    maps: Readonly<Record<string, MapOptions>>,
    constants: Readonly<Record<string, Uint8Array>>,
    programs: readonly string[] | null,
  ): { readonly maps: readonly Named[]; readonly programs: readonly Named[] };
  closeHandle(handle: Handle): void;
  pinHandle(handle: Handle, path: string): void;
  openPinned(kind: number, path: string): Handle;
  handleInfo(handle: Handle): MapInfo & ProgramInfo & LinkInfo & { readonly attachType: number };
  mapLookup(map: Handle, key: Uint8Array, value: Uint8Array): boolean;
  mapUpdate(map: Handle, key: Uint8Array, value: Uint8Array, flags: number): void;
  mapDelete(map: Handle, key: Uint8Array): boolean;
  mapNextKey(map: Handle, key: Uint8Array | null, next: Uint8Array): boolean;
  mapUpdateBatch(
    map: Handle,
    keys: Uint8Array,
    values: Uint8Array,
    count: number,
    flags: number,
  ): [errno: number, done: number];
  mapDeleteBatch(map: Handle, keys: Uint8Array, count: number): [errno: number, done: number];
  mapLookupBatch(
    map: Handle,
    cursor: Uint8Array | null,
    next: Uint8Array,
    keys: Uint8Array,
    ...values: [values: Uint8Array, count: number]
  ): [errno: number, count: number];
  testRun(
    program: Handle,
    data: Uint8Array | null,
    context: Uint8Array | null,
    repeat: number,
  ): {
    readonly returnValue: number;
    readonly data: Uint8Array;
    readonly context: Uint8Array;
    readonly nanoseconds: number;
  };
  attachTcx(program: Handle, ifindex: number, egress: boolean, netnsFd: number): Handle;
  attachClsact(
    program: Handle,
    ifindex: number,
    egress: boolean,
    ...place: [handle: number, priority: number, netnsFd: number]
  ): void;
  detachClsact(
    ifindex: number,
    egress: boolean,
    handle: number,
    ...place: [priority: number, netnsFd: number]
  ): boolean;
  /** 0: there is none. */
  queryClsact(ifindex: number, egress: boolean, handle: number, ...place: [priority: number, netnsFd: number]): number;
  updateLink(link: Handle, program: Handle): void;
  detachLink(link: Handle): void;
  openRing(map: Handle, callback: (bytes: Uint8Array) => void): RingHandle;
  consumeRing(ring: RingHandle): void;
  holdRing(ring: RingHandle, on: boolean): void;
  closeRing(ring: RingHandle): void;
  possibleCpus(): number;
  mountBpffs(path: string): void;
  unmount(path: string): void;
}

const load = (): LibbpfAddon => {
  const file =
    process.env['UNBOUNDED_LIBBPF_ADDON'] ?? fileURLToPath(new URL('../native/build/libbpf.node', import.meta.url));
  if (!existsSync(file))
    execFileSync(fileURLToPath(new URL('../native/build.sh', import.meta.url)), {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
  return createRequire(import.meta.url)(file) as LibbpfAddon;
};

let loaded: LibbpfAddon | undefined;

/** The addon; loaded (and built, where it is missing) at the first call, so that importing this library has no effect. */
export const addon = (): LibbpfAddon => (loaded ??= load());
