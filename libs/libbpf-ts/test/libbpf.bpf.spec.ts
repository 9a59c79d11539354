import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

import { createNetns, createRouteSocket } from '@unbounded/netlink';
import * as fc from 'fast-check';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';

import {
  attachProgram,
  BpfError,
  type BpfObject,
  type Codec,
  detachFilter,
  filterProgramId,
  isBpffs,
  loadObject,
  mountBpffs,
  openPinnedLink,
  openPinnedMap,
  openPinnedProgram,
  pinnedMapInfo,
  possibleCpus,
  probeTcx,
  readObject,
  unmountBpffs,
} from '../src/index.ts';
import { addon, type Handle } from '../src/native.ts';

const u32: Codec<number> = {
  size: 4,
  write: (value, view, at) => view.setUint32(at, value, true),
  read: (view, at) => view.getUint32(at, true),
};
const u64: Codec<bigint> = {
  size: 8,
  write: (value, view, at) => view.setBigUint64(at, value, true),
  read: (view, at) => view.getBigUint64(at, true),
};

let folder: string;
let elf: Uint8Array;
let object: BpfObject;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'libbpf-'));
  const source = new URL('probe.bpf.c', import.meta.url).pathname;
  const include = `-I/usr/include/${execFileSync('uname', ['-m'], { encoding: 'utf8' }).trim()}-linux-gnu`;
  execFileSync('clang', [
    '-O2',
    '-g',
    '-target',
    'bpf',
    '-mcpu=v3',
    include,
    '-c',
    source,
    '-o',
    join(folder, 'probe.o'),
  ]);
  elf = readFileSync(join(folder, 'probe.o'));
  mountBpffs(join(folder, 'bpf'));
});
afterAll(() => {
  unmountBpffs(join(folder, 'bpf'));
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  object = loadObject(elf, { name: 'probe' });
});
afterEach(() => object.close());

const pin = (name: string): string => join(folder, 'bpf', `${name}-${Math.random().toString(36).slice(2)}`);
const packet = new Uint8Array(64);

describe('objects', () => {
  test('are read without the kernel', () => {
    const spec = readObject(elf);
    expect(spec.maps).toContainEqual({ name: 'hash', type: 1, keySize: 4, valueSize: 8, maxEntries: 100, flags: 0 });
    expect(spec.programs.map(({ name }) => name)).toEqual(['first', 'second', 'refused']);
  });

  test('take constants and sizes of maps when they are loaded', () => {
    using other = loadObject(elf, {
      constants: { answer: 40, small: Uint8Array.of(3) },
      maps: { hash: { maxEntries: 7 } },
    });
    expect(other.program('first').testRun({ data: packet }).returnValue).toBe(43);
    expect(other.map('hash', u32, u64).info.maxEntries).toBe(7);
  });

  test('that the verifier refuses bring its words', () => {
    const refused = (): unknown => loadObject(elf, { programs: ['refused'] });
    expect(refused).toThrow(BpfError);
    expect(refused).toThrow(
      expect.objectContaining({
        code: 'EACCES',
        log: expect.stringContaining('invalid access to packet'),
        message: expect.stringContaining('invalid access to packet'),
      }),
    );
  });

  test('reuse a map that is pinned already', () => {
    const path = pin('hash');
    using one = loadObject(elf, { maps: { hash: { pinPath: path } } });
    one.map('hash', u32, u64).set(1, 11n);
    using two = loadObject(elf, { maps: { hash: { pinPath: path } } });
    expect(two.map('hash', u32, u64).get(1)).toBe(11n);
  });

  test.each<[string, () => unknown, string]>([
    ['bytes that are no ELF', () => loadObject(new Uint8Array(100)), 'BpfError'],
    ['no bytes', () => loadObject(new Uint8Array(0)), 'BpfError'],
    ['a map it does not have', () => loadObject(elf, { maps: { nothing: { maxEntries: 1 } } }), 'TypeError'],
    ['a program it does not have', () => loadObject(elf, { programs: ['nothing'] }), 'TypeError'],
    ['a constant it does not have', () => loadObject(elf, { constants: { nothing: 1 } }), 'TypeError'],
    ['a constant that does not fit', () => loadObject(elf, { constants: { small: 256 } }), 'TypeError'],
    ['a constant of the wrong size', () => loadObject(elf, { constants: { answer: new Uint8Array(3) } }), 'TypeError'],
    ['a name past 127 bytes', () => loadObject(elf, { name: 'n'.repeat(200) }), 'TypeError'],
  ])('refuse %s', (_, load, name) => {
    expect(load).toThrow(expect.objectContaining({ name }));
  });

  test('cut off anywhere are refused, and crash nothing', () => {
    fc.assert(
      fc.property(fc.nat(elf.length - 1), (length) => {
        try {
          readObject(elf.subarray(0, length));
        } catch (error) {
          expect(error).toBeInstanceOf(BpfError);
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe('maps', () => {
  test('set, get, delete, one by one and many at once', () => {
    using map = object.map('hash', u32, u64);
    map.set(1, 11n);
    expect(map.get(1)).toBe(11n);
    expect(map.get(2)).toBeUndefined();
    expect(() => map.set(1, 12n, 'noexist')).toThrow(expect.objectContaining({ code: 'EEXIST' }));
    expect(() => map.set(2, 12n, 'exist')).toThrow(expect.objectContaining({ code: 'ENOENT' }));
    map.setMany([
      [2, 22n],
      [3, 33n],
    ]);
    expect([...map.entries()].sort(([a], [b]) => a - b)).toEqual([
      [1, 11n],
      [2, 22n],
      [3, 33n],
    ]);
    expect(map.count()).toBe(3);
    expect(map.deleteMany([9, 1, 8, 2, 7])).toBe(2);
    expect(map.delete(3)).toBe(true);
    expect(map.delete(3)).toBe(false);
    expect([...map.entries()]).toEqual([]);
  });

  test('that are full say how far they came', () => {
    using map = object.map('hash', u32, u64);
    const entries = Array.from({ length: 200 }, (_, index) => [index, 1n] as const);
    expect(() => map.setMany(entries)).toThrow(expect.objectContaining({ name: 'BpfError', code: 'E2BIG', done: 100 }));
    expect([...map.entries()]).toHaveLength(100);
    expect(map.count()).toBe(100);
  });

  test('of one slot for each index list every slot', () => {
    using map = object.map('array', u32, u64);
    map.set(2, 7n);
    expect([...map.entries()]).toEqual([
      [0, 0n],
      [1, 0n],
      [2, 7n],
      [3, 0n],
    ]);
    expect(map.count()).toBe(4);
    expect(map.get(4)).toBeUndefined();
  });

  test('per CPU have a value for each', () => {
    using counts = object.perCpuMap('per_cpu', u32, u32);
    object.program('first').testRun({ data: packet, repeat: 5 });
    expect(counts.get(0)).toHaveLength(possibleCpus());
    expect(counts.get(0)?.reduce((sum, count) => sum + count, 0)).toBe(5);
    expect([...counts.entries()].map(([key]) => key)).toEqual([0, 1]);
    counts.setAll(1, 7);
    expect(counts.get(1)).toEqual(Array.from({ length: possibleCpus() }, () => 7));
    expect(() => counts.delete(1)).toThrow(BpfError);
  });

  test.each<[string, () => unknown]>([
    ['a key codec of another size', () => object.map('hash', u64, u64)],
    ['a value codec of another size', () => object.map('hash', u32, u32)],
    ['a per-CPU map opened as a plain one', () => object.map('per_cpu', u32, u32)],
    ['a plain map opened as per CPU', () => object.perCpuMap('hash', u32, u64)],
    ['a map that is not there', () => object.map('nothing', u32, u64)],
  ])('refuse %s', (_, open) => {
    expect(open).toThrow(TypeError);
  });

  test('once closed throw an Error, and closing twice is fine', () => {
    const map = object.map('hash', u32, u64);
    map.close();
    map.close();
    expect(() => map.get(1)).toThrow('the BPF map is closed');
  });
});

describe('the addon checks by itself', () => {
  const withMap = (use: (handle: Handle) => void): void => {
    const { maps, programs } = addon().loadObject(elf, 'x', {}, {}, null);
    const handle = maps.find(({ name }) => name === 'hash')?.handle;
    if (!handle) throw new Error('no map');
    try {
      use(handle);
    } finally {
      for (const entry of [...maps, ...programs]) addon().closeHandle(entry.handle);
    }
  };

  test('buffers of any other size are refused before the kernel sees them', () => {
    withMap((handle) => {
      fc.assert(
        fc.property(fc.nat(40), fc.nat(40), fc.nat(8), (keyBytes, valueBytes, count) => {
          const [key, value] = [new Uint8Array(keyBytes), new Uint8Array(valueBytes)];
          const wrong = expect.objectContaining({ name: 'TypeError' });
          if (keyBytes !== 4 || valueBytes !== 8) expect(() => addon().mapUpdate(handle, key, value, 0)).toThrow(wrong);
          if (keyBytes !== 4 || valueBytes !== 8) expect(() => addon().mapLookup(handle, key, value)).toThrow(wrong);
          if (keyBytes !== 4) expect(() => addon().mapDelete(handle, key)).toThrow(wrong);
          if (keyBytes !== 4 * count || valueBytes !== 8 * count || count === 0) {
            expect(() => addon().mapUpdateBatch(handle, key, value, count, 0)).toThrow(wrong);
            expect(() => addon().mapLookupBatch(handle, null, new Uint8Array(8), key, value, count)).toThrow(wrong);
          }
        }),
      );
    });
  });

  test('arguments of any other type are refused', () => {
    const anything = fc.oneof(fc.anything(), fc.constant(new Float64Array(4)), fc.constant(null));
    const names = Object.keys(addon()).filter((name) => !['mountBpffs', 'unmount', 'possibleCpus'].includes(name));
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.array(anything, { maxLength: 6 }), (name, args) => {
        const call = (addon() as unknown as Record<string, (...args: unknown[]) => unknown>)[name];
        expect(() => call?.(...args)).toThrow(/./);
      }),
      { numRuns: 300 },
    );
  });

  test('a handle of another kind is refused', () => {
    withMap((handle) =>
      expect(() => addon().testRun(handle, packet, null, 1)).toThrow('handle must be a BPF program, it is a map'),
    );
  });
});

describe('programs and links', () => {
  const inNetns = async (use: (place: { netnsFd: number; ifindex: number }) => void | Promise<void>): Promise<void> => {
    using ns = createNetns();
    await using net = createRouteSocket({ netnsFd: ns.fd });
    const { index } = await net.links.create({ name: 'x0', kind: { kind: 'ifb' }, up: true });
    await use({ netnsFd: ns.fd, ifindex: index });
  };

  test('run on a packet and give it back', () => {
    const { returnValue, data } = object.program('second').testRun({ data: packet });
    expect(returnValue).toBe(0);
    expect(data).toEqual(packet);
  });

  test('that run many times say how long one run takes', () => {
    const { nanoseconds } = object.program('first').testRun({ data: packet, repeat: 100_000 });
    expect(nanoseconds).toBeGreaterThan(0);
    expect(nanoseconds).toBeLessThan(100_000); // all of them would take longer
  });

  test('attached by tcx stay while they are pinned, change their program in place, and end when they are detached', async () => {
    await inNetns(({ netnsFd, ifindex }) => {
      if (probeTcx(object.program('second')).supported === 'no') return; // then the next test is all there is
      const path = pin('link');
      const attachment = attachProgram(object.program('first'), {
        netnsFd,
        ifindex,
        direction: 'egress',
        pinPath: path,
      });
      if (attachment.via !== 'tcx') throw new Error('not attached by tcx');
      attachment.link.close();
      using link = openPinnedLink(path);
      expect(link.info).toMatchObject({ ifindex, direction: 'egress', programId: object.program('first').info.id });
      link.update(object.program('second'));
      expect(link.info.programId).toBe(object.program('second').info.id);
      link.detach();
      expect(link.info.ifindex).toBe(0);
    });
  });

  test('attached by clsact are seen by netlink, replaced in place and removed', async () => {
    await inNetns(async ({ netnsFd, ifindex }) => {
      const place = { netnsFd, ifindex, direction: 'ingress', via: 'clsact' } as const;
      attachProgram(object.program('first'), place);
      attachProgram(object.program('second'), place);
      await using net = createRouteSocket({ netnsFd });
      expect(await net.trafficControl.filters(ifindex, 'ingress')).toMatchObject([
        { programId: object.program('second').info.id, directAction: true, handle: 1, priority: 1, protocol: 3 },
      ]);
      expect(filterProgramId(place)).toBe(object.program('second').info.id);
      expect(filterProgramId({ ...place, direction: 'egress' })).toBeUndefined();
      expect(detachFilter(place)).toBe(true);
      expect(filterProgramId(place)).toBeUndefined();
      expect(detachFilter(place)).toBe(false);
      expect(await net.trafficControl.filters(ifindex, 'ingress')).toEqual([]);
    });
  });

  test('are not found by a query where there is no qdisc, or one whose filters somebody took away with it', async () => {
    await inNetns(async ({ netnsFd, ifindex }) => {
      const place = { netnsFd, ifindex, direction: 'ingress', via: 'clsact' } as const;
      expect(filterProgramId(place)).toBeUndefined();
      attachProgram(object.program('first'), place);
      await using net = createRouteSocket({ netnsFd });
      await net.trafficControl.deleteClsact(ifindex);
      expect(filterProgramId(place)).toBeUndefined();
    });
  });

  test('on a device that is not there are refused', async () => {
    await inNetns(({ netnsFd }) => {
      expect(() => attachProgram(object.program('first'), { netnsFd, ifindex: 4711, direction: 'egress' })).toThrow(
        expect.objectContaining({ name: 'BpfError', code: 'ENODEV' }),
      );
    });
  });

  test('are found again by their pins; what is pinned as something else is refused', () => {
    const [map, program] = [pin('map'), pin('program')];
    object.map('hash', u32, u64).pin(map);
    object.program('first').pin(program);
    using again = openPinnedProgram(program);
    expect(again.info.tag).toBe(object.program('first').info.tag);
    openPinnedMap(map, u32, u64).close();
    expect(pinnedMapInfo(map)).toMatchObject({ keySize: 4, valueSize: 8, flags: 0 });
    expect(() => pinnedMapInfo(program)).toThrow(TypeError);
    expect(() => openPinnedProgram(map)).toThrow(TypeError);
    expect(() => openPinnedMap(map, u32, u32)).toThrow(TypeError);
    expect(() => openPinnedMap(pin('nothing'), u32, u64)).toThrow(expect.objectContaining({ code: 'ENOENT' }));
    expect(isBpffs(join(folder, 'bpf'))).toBe(true);
    expect(isBpffs(folder)).toBe(false);
  });
});

describe('ring buffers', () => {
  test('bring every record, and end with a worker that ends', async () => {
    const lengths: number[] = [];
    const all = Promise.withResolvers<void>();
    using ring = object.ringBuffer('ring', (records) => {
      lengths.push(
        ...records.map((record) => new DataView(record.buffer, record.byteOffset, record.length).getUint32(0, true)),
      );
      if (lengths.length === 20) all.resolve();
    });
    void ring;
    for (let index = 0; index < 20; index++) object.program('first').testRun({ data: new Uint8Array(64 + index) });
    await all.promise;
    expect(lengths).toEqual(Array.from({ length: 20 }, (_, index) => 64 + index));

    const [url, path] = [new URL('../src/index.ts', import.meta.url).href, join(folder, 'probe.o')];
    const worker = new Worker(
      `import('node:fs').then(async ({ readFileSync }) => { const { loadObject } = await import(${JSON.stringify(url)}); loadObject(readFileSync(${JSON.stringify(path)})).ringBuffer('ring', () => {}); process.exit(0); });`,
      { eval: true },
    );
    expect(await new Promise((resolve) => worker.once('exit', resolve))).toBe(0);
  });
});
