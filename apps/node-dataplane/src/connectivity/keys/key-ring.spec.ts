import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type KeyDisk, openKeyDisk } from './key-disk.ts';
import { KEY_FILES, type KeyRing, openKeyRing } from './key-ring.ts';

let folder: string;
let clockMs: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keys-'));
  clockMs = 1_000_000;
});
afterEach(() => rmSync(folder, { recursive: true }));

const PREVIOUS_MS = 300_000;
const open = (disk: KeyDisk | string = folder): KeyRing =>
  openKeyRing(disk, { previousMs: PREVIOUS_MS, now: () => clockMs, elapsed: () => clockMs });
const fileText = (name: string): string => readFileSync(join(folder, name), 'utf8');
const privateKeysOnDisk = (): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.priv'))
    .map((name) => `${name} ${publicKeyOf(fileText(name))}`);
const shown = (ring: KeyRing) =>
  [ring.current, ring.next, ring.previous].map((key) => key && [key.generation, key.publicKey]);

test('a pair is made once, for its owner alone, and nothing else is written', () => {
  const { current } = open();
  expect(open().current.publicKey).toBe(current.publicKey);
  expect(readdirSync(folder).sort()).toEqual(['server.priv', 'server.pub']);
  expect(statSync(join(folder, 'server.priv')).mode & 0o777).toBe(0o600);
  expect(fileText('server.pub')).toBe(current.publicKey);
  expect(current.generation).toBe(0);
});

test('a file that holds no key is never overwritten', () => {
  writeFileSync(join(folder, 'server.priv'), 'hello');
  expect(open).toThrow('server.priv holds no WireGuard private key');
  expect(fileText('server.priv')).toBe('hello');
});

test('a state that cannot be read is told of, because the generation would be guessed', () => {
  open().begin();
  writeFileSync(join(folder, KEY_FILES.state), '{}');
  expect(open).toThrow('server.keys.json does not say which generation');
});

test('an exchange: a next key, which becomes the current one, and the former one for its time', () => {
  const ring = open();
  const first = ring.current.publicKey;
  ring.begin('please');
  const second = ring.next!.publicKey;
  expect(shown(ring)).toEqual([[0, first], [1, second], undefined]);
  expect([ring.of(0)?.publicKey, ring.of(1)?.publicKey, ring.of(2)]).toEqual([first, second, undefined]);
  expect([ring.honoured, fileText('server.next.pub')]).toEqual(['please', second]);
  ring.promote();
  expect(shown(ring)).toEqual([[1, second], undefined, [0, first]]);
  expect([fileText('server.pub'), publicKeyOf(fileText('server.priv'))]).toEqual([second, second]);
  expect(existsSync(join(folder, 'server.next.priv'))).toBe(true); // what names it is rewritten by the next pass
  ring.tidy(false);
  expect(existsSync(join(folder, 'server.next.priv'))).toBe(true);
  ring.tidy(true);
  expect(existsSync(join(folder, 'server.next.priv'))).toBe(false);
  clockMs += PREVIOUS_MS;
  expect([ring.tidy(true), ring.tidy(true)]).toEqual([true, false]);
  expect(ring.previous).toBeUndefined();
  expect(privateKeysOnDisk()).toEqual([`server.priv ${second}`]);
  expect(shown(open())).toEqual(shown(ring));
});

describe('a key that an operator puts there', () => {
  const put = (): string => {
    const key = generatePrivateKey();
    writeFileSync(join(folder, 'server.priv'), key);
    return publicKeyOf(key);
  };

  test('is used from the next start on, of the generation that the node has', () => {
    const ring = open();
    ring.begin();
    ring.promote();
    const own = put();
    expect(open().current).toMatchObject({ publicKey: own, generation: 1 });
    expect(fileText('server.pub')).toBe(own);
  });

  test('amid an exchange is followed by the next key all the same', () => {
    const ring = open();
    ring.begin();
    const own = put();
    expect(shown(open())).toEqual([[0, own], [1, ring.next!.publicKey], undefined]);
  });

  test('that is the next one calls the exchange off', () => {
    const ring = open();
    ring.begin();
    writeFileSync(join(folder, 'server.priv'), ring.next!.privateKey);
    expect(shown(open())).toEqual([[0, ring.next!.publicKey], undefined, undefined]);
  });
});

test('an operator who removes the next key calls the exchange off, and is not asked again', () => {
  open().begin('please');
  rmSync(join(folder, 'server.next.priv'));
  const ring = open();
  expect([ring.next, ring.honoured, ring.current.generation]).toEqual([undefined, 'please', 0]);
});

/** A disk that refuses every change from now on, as a full or read-only one does. */
const refusing = (code: string, disk: KeyDisk = openKeyDisk(folder)): KeyDisk => {
  const refuse = (): never => {
    throw Object.assign(new Error(`${code}: refused`), { code, errno: -1 });
  };
  return { ...disk, write: refuse, remove: refuse, restrict: refuse };
};

describe.each(['ENOSPC', 'EROFS', 'EIO'])('a disk that refuses (%s)', (code) => {
  test('lets the keys that it holds be used, also amid an exchange', () => {
    const ring = open();
    ring.begin();
    ring.promote();
    const told: string[] = [];
    const again = openKeyRing(refusing(code), {
      previousMs: PREVIOUS_MS,
      now: () => clockMs,
      elapsed: () => clockMs,
      onUnwritable: ({ message }) => told.push(message),
    });
    expect(shown(again)).toEqual(shown(ring));
    expect(told.length).toBeGreaterThan(0);
  });

  test('begins no key that could not be kept, and the exchange begins when it takes writes again', () => {
    open();
    let isFull = true;
    const [good, bad] = [openKeyDisk(folder), refusing(code)];
    const disk: KeyDisk = { ...good, write: (...args) => (isFull ? bad : good).write(...args) };
    const ring = open(disk);
    expect(() => ring.begin('please')).toThrow(code);
    expect([ring.next, ring.honoured]).toEqual([undefined, undefined]);
    expect(shown(open())).toEqual(shown(ring));
    isFull = false;
    ring.begin('please');
    expect([ring.next?.generation, ring.honoured]).toEqual([1, 'please']);
  });

  test('at any step of a promotion leaves keys that go together, and the promotion comes to its end later', () => {
    for (let writes = 0; writes < 4; writes++) {
      rmSync(folder, { recursive: true });
      const first = open().current.publicKey;
      let left = Number.POSITIVE_INFINITY;
      const [good, bad] = [openKeyDisk(folder), refusing(code)];
      const disk: KeyDisk = { ...good, write: (...args) => (left-- > 0 ? good : bad).write(...args) };
      const ring = open(disk);
      ring.begin();
      const second = ring.next!.publicKey;
      left = writes;
      expect(() => ring.promote()).toThrow(code);
      expect(shown(ring)).toEqual([[0, first], [1, second], undefined]);
      const restarted = open(refusing(code)); // while the disk still refuses
      const { generation, publicKey } = restarted.current;
      expect([generation, publicKey]).toEqual(generation === 0 ? [0, first] : [1, second]);
      left = Number.POSITIVE_INFINITY;
      ring.promote();
      expect(shown(ring)).toEqual([[1, second], undefined, [0, first]]);
      expect(shown(open())).toEqual(shown(ring));
    }
  });
});

describe('a wall clock that is set', () => {
  const HOUR_MS = 3_600_000;
  const openAt = (now: () => number, elapsed: () => number): KeyRing =>
    openKeyRing(folder, { previousMs: PREVIOUS_MS, now, elapsed });

  test.each([-HOUR_MS, HOUR_MS])('by %i ms leaves the previous key its time, also over a restart', (stepMs) => {
    let [wallMs, elapsedMs] = [Date.now() + 10 * HOUR_MS, 0];
    const reopen = (): KeyRing =>
      openAt(
        () => wallMs,
        () => elapsedMs,
      );
    const ring = reopen();
    ring.begin();
    ring.promote();
    wallMs += stepMs;
    elapsedMs += PREVIOUS_MS - 1;
    ring.tidy(true);
    expect(ring.previous).toBeDefined();
    const restarted = reopen();
    restarted.tidy(true);
    const isOver = stepMs > 0; // by the clock that was set its time is over: the peers have asked anew long ago
    expect(restarted.previous === undefined).toBe(isOver);
    elapsedMs += PREVIOUS_MS; // no longer than its time, even though the clock says an hour more
    restarted.tidy(true);
    expect(restarted.previous).toBeUndefined();
  });

  test('back: a key from the future is taken for new, so that it does not grow older than it may', () => {
    const madeMs = Date.now() + 10_000 * HOUR_MS;
    const ring = openAt(
      () => madeMs,
      () => 0,
    );
    ring.begin();
    ring.promote();
    const nowMs = madeMs - 9000 * HOUR_MS;
    expect(
      openAt(
        () => nowMs,
        () => 0,
      ).current.sinceMs,
    ).toBe(nowMs);
    expect(
      openAt(
        () => nowMs + HOUR_MS,
        () => 0,
      ).current.sinceMs,
    ).toBe(nowMs); // once
  });
});

test('an empty key file, as a power cut leaves it, is no key: a new one is made', () => {
  writeFileSync(join(folder, 'server.priv'), '');
  expect(open().current.publicKey).toBe(publicKeyOf(fileText('server.priv')));
});

/** A disk at which the process dies after so many changes. */
const dying = (changes: number, disk: KeyDisk = openKeyDisk(folder)): KeyDisk => {
  let left = changes;
  const alive = (): void => {
    if (left-- <= 0) throw new Error('died');
  };
  return {
    ...disk,
    write(name, text, mode) {
      alive();
      disk.write(name, text, mode);
    },
    remove(name) {
      alive();
      disk.remove(name);
    },
  };
};

const inMemory = (files: Map<string, string>): KeyDisk => ({
  folder: 'memory',
  read: (name) => files.get(name),
  write: (name, text) => void files.set(name, text),
  remove: (name) => void files.delete(name),
  restrict: () => undefined,
  changedMs: () => 0,
});

describe('a process that dies at any point', () => {
  /** Runs an exchange until it dies; whether it came to its end. */
  const exchange = (disk: KeyDisk, seen: Set<string>): boolean => {
    try {
      const ring = open(disk);
      const note = (): unknown => seen.add(ring.current.publicKey);
      note();
      if (ring.current.generation === 0) {
        if (!ring.next) ring.begin('please');
        ring.promote();
        note();
      }
      ring.tidy(true);
      clockMs += PREVIOUS_MS;
      ring.tidy(true);
      return true;
    } catch (error) {
      expect((error as Error).message).toBe('died');
      return false;
    }
  };

  test('leaves files from which its successor goes on, with keys that belong together', () => {
    for (let changes = 0; ; changes++) {
      rmSync(folder, { recursive: true });
      clockMs = 1_000_000;
      const first = open().current.publicKey;
      const ended = exchange(dying(changes), new Set());
      const survivor = open();
      const { generation, publicKey } = survivor.current;
      expect(generation === 0 ? publicKey === first : publicKey !== first, `after ${changes} changes`).toBe(true);
      expect(fileText('server.pub')).toBe(publicKey);
      expect(publicKeyOf(fileText('server.priv'))).toBe(publicKey);
      if (generation === 1 && survivor.previous) expect(survivor.previous.publicKey).toBe(first);
      for (const key of [survivor.next, survivor.previous, survivor.current])
        if (key) expect(publicKeyOf(readFileSync(key.file, 'utf8'))).toBe(key.publicKey);
      expect(exchange(openKeyDisk(folder), new Set())).toBe(true);
      expect([open().current.generation, privateKeysOnDisk().length]).toEqual([1, 1]);
      if (ended) break;
    }
  });

  test('twice in a row, too, and never more than one key follows another', () => {
    for (let once = 0; once < 14; once++) {
      for (let twice = 0; twice < 14; twice++) {
        clockMs = 1_000_000;
        const files = new Map<string, string>();
        const disk = inMemory(files);
        const seen = new Set<string>([open(disk).current.publicKey]);
        exchange(dying(once, disk), seen);
        exchange(dying(twice, disk), seen);
        expect(exchange(disk, seen)).toBe(true);
        expect([open(disk).current.generation, seen.size]).toEqual([1, 2]);
        expect([...files.keys()].sort()).toEqual(['server.keys.json', 'server.priv', 'server.pub']);
      }
    }
  });
});
