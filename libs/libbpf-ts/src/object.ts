import type { BpfObject, LoadOptions, ObjectSpec } from './api.port.ts';
import { attempt } from './bpf-error.ts';
import { typedMap, typedPerCpuMap } from './map.ts';
import { addon, type Handle } from './native.ts';
import { liveProgram } from './program.ts';
import { openRingBuffer } from './ring-buffer.ts';

/** What an ELF object declares; the kernel is not asked. @throws BpfError when it is none */
export const readObject = (bytes: Uint8Array): ObjectSpec => {
  const { maps, programs } = attempt('read BPF object', () => addon().readObject(bytes));
  return { maps, programs };
};

type Constant = number | bigint | Uint8Array;

/** In host order, in as many bytes as the variable has. */
const constantBytes = (name: string, value: Constant, size: number): Uint8Array => {
  if (value instanceof Uint8Array) return value;
  const [number, limit] = [BigInt(value), 1n << BigInt(8 * size)];
  if (number >= limit || number < -(limit >> 1n))
    throw new TypeError(`constant ${name} = ${number} must fit into ${size} bytes`);
  const bytes = BigInt.asUintN(8 * size, number);
  return Uint8Array.from({ length: size }, (_, index) => Number((bytes >> BigInt(8 * index)) & 0xffn));
};

const encodeConstants = (bytes: Uint8Array, values: Readonly<Record<string, Constant>>): Record<string, Uint8Array> => {
  if (Object.keys(values).length === 0) return {};
  const sizes = new Map(
    addon()
      .readObject(bytes)
      .constants.map(({ name, size }) => [name, size]),
  );
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const size = sizes.get(name);
      if (size === undefined)
        throw new TypeError(`the object has no constant ${name}: it has ${[...sizes.keys()].join(', ') || 'none'}`);
      return [name, constantBytes(name, value, size)];
    }),
  );
};

/** By name. @throws TypeError for one that is not there */
const finder = (
  kind: string,
  entries: readonly { readonly name: string; readonly handle: Handle }[],
): ((name: string) => Handle) => {
  const byName = new Map(entries.map(({ name, handle }) => [name, handle]));
  return (name) => {
    const handle = byName.get(name);
    if (!handle) throw new TypeError(`the object has no ${kind} ${name}: it has ${[...byName.keys()].join(', ')}`);
    return handle;
  };
};

/** Loads an ELF object into the kernel. @throws BpfError with the verifier's `log`, TypeError for unknown names */
export const loadObject = (bytes: Uint8Array, options: LoadOptions = {}): BpfObject => {
  const { name = 'object', maps = {}, programs = null } = options;
  const constants = encodeConstants(bytes, options.constants ?? {});
  const spec = readObject(bytes);
  const unknown = Object.keys(maps).find((map) => !spec.maps.some((declared) => declared.name === map));
  if (unknown !== undefined)
    throw new TypeError(`the object has no map ${unknown}: it has ${spec.maps.map((map) => map.name).join(', ')}`);
  const loaded = attempt(`BPF object ${name}`, () => addon().loadObject(bytes, name, maps, constants, programs));
  const [map, program] = [finder('map', loaded.maps), finder('program', loaded.programs)];
  const close = (): void => {
    for (const { handle } of [...loaded.maps, ...loaded.programs]) addon().closeHandle(handle);
  };
  return {
    spec,
    map: (name, key, value) => typedMap(map(name), key, value),
    perCpuMap: (name, key, value) => typedPerCpuMap(map(name), key, value),
    program: (name) => liveProgram(program(name)),
    ringBuffer: (name, onRecords) => openRingBuffer(map(name), onRecords),
    close,
    [Symbol.dispose]: close,
  };
};
