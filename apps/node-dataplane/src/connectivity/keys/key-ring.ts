import { join } from 'node:path';
import { generatePrivateKey, isKey, publicKeyOf } from '@unbounded/wireguard';
import { isDiskError, type KeyDisk, openKeyDisk } from './key-disk.ts';
import { type KeyState, parseKeyState, without } from './key-state.ts';

/**
 * The node's WireGuard keys: the current one, while it is exchanged the next one, and for some minutes afterwards the
 * previous one. Operators know `server.priv` and `server.pub`, the current pair; who puts another key there has it used
 * from the agent's next start on. Every step is one file written last, so that an agent that dies anywhere in between
 * finds the state before or after it.
 */
export interface KeyRing {
  readonly current: RingKey;
  readonly next: RingKey | undefined;
  readonly previous: RingKey | undefined;
  /** The key of a generation; undefined: it is not there (any more). */
  of(generation: number): RingKey | undefined;
  /** The last request that led to a new key. */
  readonly honoured: string | undefined;
  /** Makes a next key. @throws Error when it cannot be kept: then there is none */
  begin(honoured?: string): void;
  /** The next key becomes the current one, and that the previous one. @throws Error when that cannot be kept: call it again */
  promote(): void;
  /**
   * Deletes keys whose time is over, and, when nothing names the file of the former next key any more, that one's. Returns
   * whether a key went. @throws Error when that cannot be kept: call it again
   */
  tidy(isUnnamed: boolean): boolean;
}

interface RingKey {
  readonly generation: number;
  readonly privateKey: string;
  readonly publicKey: string;
  /** Where the private key is. */
  readonly file: string;
  /** Milliseconds since the epoch: when the key was made. */
  readonly sinceMs: number;
}

export interface KeyRingOptions {
  /** For how long the previous key is kept. */
  readonly previousMs: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Milliseconds on a clock that only goes forward. */
  readonly elapsed: () => number;
  /** Told of what could not be written at the start and is of no harm. */
  readonly onUnwritable?: (error: Error) => void;
}

export const KEY_FILES = {
  current: 'server.priv',
  currentPublic: 'server.pub',
  next: 'server.next.priv',
  nextPublic: 'server.next.pub',
  previous: 'server.prev.priv',
  state: 'server.keys.json',
} as const;

const [PRIVATE, PUBLIC] = [0o600, 0o644];

const readPrivate = (disk: KeyDisk, name: string): { privateKey: string; publicKey: string } | undefined => {
  const privateKey = disk.read(name);
  return privateKey !== undefined && isKey(privateKey) ? { privateKey, publicKey: publicKeyOf(privateKey) } : undefined;
};

/** Runs a write that may fail because of the disk. Returns whether it worked. */
type Tolerate = (write: () => unknown) => boolean;

/** The current pair, made when there is none. @throws Error when the file holds no key (it is never overwritten) */
const loadCurrent = (disk: KeyDisk, tolerate: Tolerate): { privateKey: string; publicKey: string } => {
  // An empty file is what a power cut leaves of a writer that does not synchronize.
  const found = disk.read(KEY_FILES.current) || undefined;
  const text = found ?? generatePrivateKey();
  if (!isKey(text))
    throw new Error(
      `${join(disk.folder, KEY_FILES.current)} holds no WireGuard private key: remove it to have a new one made, or put one there as "wg genkey" prints it`,
    );
  if (found === undefined) disk.write(KEY_FILES.current, text, PRIVATE);
  else tolerate(() => disk.restrict(KEY_FILES.current));
  return { privateKey: text, publicKey: publicKeyOf(text) };
};

const ensurePublic = (disk: KeyDisk, publicKey: string): void => {
  if (disk.read(KEY_FILES.currentPublic) !== publicKey) disk.write(KEY_FILES.currentPublic, publicKey, PUBLIC);
};

const writeState = (disk: KeyDisk, state: KeyState): KeyState => {
  disk.write(KEY_FILES.state, JSON.stringify(state), PRIVATE);
  return state;
};

/** Whether an earlier process had said that the next key is the current one and not come to write it. */
const isHalfPromoted = (disk: KeyDisk, state: KeyState): boolean =>
  state.previous !== undefined &&
  state.previous.publicKey === readPrivate(disk, KEY_FILES.current)?.publicKey &&
  readPrivate(disk, KEY_FILES.next)?.publicKey === state.current.publicKey;

/** The state before the promotion: the disk takes no current key, and what says which key is current must agree with it. */
const demoted = (state: KeyState, publicKey: string, sinceMs: number): KeyState => ({
  ...without(state, 'previous'),
  generation: state.generation - 1,
  current: { publicKey, sinceMs },
  next: state.current,
});

/** A key that was made while the clock was ahead: it is taken for new, else it would be too young for as long as that. */
const notInFuture = (state: KeyState, nowMs: number): KeyState =>
  state.current.sinceMs <= nowMs ? state : { ...state, current: { ...state.current, sinceMs: nowMs } };

/** Brings files and state together again, whatever came in between. */
const recover = (disk: KeyDisk, nowMs: number, tolerate: Tolerate): KeyState => {
  const text = disk.read(KEY_FILES.state);
  let known = text === undefined ? undefined : parseKeyState(text, join(disk.folder, KEY_FILES.state));
  const isBehind =
    known !== undefined &&
    isHalfPromoted(disk, known) &&
    !tolerate(() => disk.write(KEY_FILES.current, disk.read(KEY_FILES.next)!, PRIVATE));
  const { publicKey } = loadCurrent(disk, tolerate);
  tolerate(() => ensurePublic(disk, publicKey));
  const current = { publicKey, sinceMs: Math.round(disk.changedMs(KEY_FILES.current)) };
  if (!known) return notInFuture({ generation: 0, current }, nowMs);
  if (isBehind) known = demoted(known, publicKey, current.sinceMs);
  let state = known.current.publicKey === publicKey ? known : { ...known, current }; // another key was put there
  const next = readPrivate(disk, KEY_FILES.next)?.publicKey;
  if (state.next && (state.next.publicKey !== next || next === publicKey)) state = without(state, 'next');
  if (state.previous && state.previous.publicKey !== readPrivate(disk, KEY_FILES.previous)?.publicKey)
    state = without(state, 'previous');
  state = notInFuture(state, nowMs);
  if (JSON.stringify(state) !== JSON.stringify(known)) tolerate(() => writeState(disk, state));
  return state;
};

const ringKey = (disk: KeyDisk, name: string, rest: Pick<RingKey, 'generation' | 'sinceMs'>): RingKey => ({
  ...readPrivate(disk, name)!,
  file: join(disk.folder, name),
  ...rest,
});

const createTolerate =
  (onUnwritable: (error: Error) => void = () => undefined): Tolerate =>
  (write) => {
    try {
      write();
      return true;
    } catch (error) {
      if (!isDiskError(error)) throw error;
      onUnwritable(error);
      return false;
    }
  };

export const openKeyRing = (where: string | KeyDisk, options: KeyRingOptions): KeyRing => {
  const { previousMs, now, elapsed, onUnwritable } = options;
  const disk = typeof where === 'string' ? openKeyDisk(where) : where;
  let state = recover(disk, now(), createTolerate(onUnwritable));
  /** On the clock that only goes forward: the kept time is the wall clock's, which may have been set since. */
  let previousUntilMs = 0;
  let timedKey: string | undefined;
  let keys: Pick<KeyRing, 'current' | 'next' | 'previous'>;
  let isTidy = false;

  const load = (changed: KeyState): void => {
    const { previous: former } = changed;
    if (former?.publicKey !== timedKey)
      previousUntilMs = elapsed() + Math.min(previousMs, Math.max(0, (former?.untilMs ?? 0) - now()));
    timedKey = former?.publicKey;
    state = changed;
    const { generation, current, next, previous } = state;
    keys = {
      current: ringKey(disk, KEY_FILES.current, { generation, sinceMs: current.sinceMs }),
      next: next && ringKey(disk, KEY_FILES.next, { generation: generation + 1, sinceMs: next.sinceMs }),
      previous: previous && ringKey(disk, KEY_FILES.previous, { generation: generation - 1, sinceMs: 0 }),
    };
  };
  load(state);

  return {
    get current() {
      return keys.current;
    },
    get next() {
      return keys.next;
    },
    get previous() {
      return keys.previous;
    },
    get honoured() {
      return state.honoured;
    },
    of: (generation) =>
      [keys.current, keys.next, keys.previous].find((key) => key !== undefined && key.generation === generation),
    begin(honoured) {
      const privateKey = generatePrivateKey();
      const publicKey = publicKeyOf(privateKey);
      disk.write(KEY_FILES.next, privateKey, PRIVATE);
      disk.write(KEY_FILES.nextPublic, publicKey, PUBLIC);
      const asked = honoured === undefined ? {} : { honoured };
      load(writeState(disk, { ...state, ...asked, next: { publicKey, sinceMs: now() } })); // from here on there is one
    },
    promote() {
      const { generation, current, next } = state;
      if (!next) throw new Error('there is no next key that could become the current one: begin() makes one');
      disk.write(KEY_FILES.previous, keys.current.privateKey, PRIVATE);
      const previous = { publicKey: current.publicKey, untilMs: now() + previousMs };
      const promoted = { ...without(state, 'next'), generation: generation + 1, current: next, previous };
      writeState(disk, promoted); // from here on it is so; what is not done yet recover() does
      disk.write(KEY_FILES.current, keys.next!.privateKey, PRIVATE);
      ensurePublic(disk, next.publicKey);
      isTidy = false;
      load(promoted);
    },
    tidy(isUnnamed) {
      const isOver = state.previous !== undefined && elapsed() >= previousUntilMs;
      if (isOver) load(writeState(disk, without(state, 'previous')));
      if (isTidy && !isOver) return false;
      if (!state.previous) disk.remove(KEY_FILES.previous);
      if (!state.next && isUnnamed) for (const name of [KEY_FILES.next, KEY_FILES.nextPublic]) disk.remove(name);
      isTidy = isUnnamed;
      return isOver;
    },
  };
};
