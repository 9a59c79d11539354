import { join } from 'node:path';
import { generatePrivateKey, isKey, publicKeyOf } from '@unbounded/wireguard';
import { type KeyDisk, openKeyDisk } from './key-disk.ts';
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
  /** Makes a next key. */
  begin(honoured?: string): void;
  /** The next key becomes the current one, and that the previous one. */
  promote(): void;
  /**
   * Deletes keys whose time is over, and, when nothing names the file of the former next key any more, that one's. Returns
   * whether a key went.
   */
  tidy(isUnnamed: boolean): boolean;
}

export interface RingKey {
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
  readonly now: () => number;
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

/** The current pair, made when there is none. @throws Error when the file holds no key (it is never overwritten) */
const loadCurrent = (disk: KeyDisk): { privateKey: string; publicKey: string } => {
  const found = disk.read(KEY_FILES.current);
  const text = found ?? generatePrivateKey();
  if (!isKey(text))
    throw new Error(
      `${join(disk.folder, KEY_FILES.current)} holds no WireGuard private key: remove it to have a new one made, or put one there as "wg genkey" prints it`,
    );
  if (found === undefined) disk.write(KEY_FILES.current, text, PRIVATE);
  else disk.restrict(KEY_FILES.current);
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

/** Brings files and state together again, whatever came in between. */
const recover = (disk: KeyDisk): KeyState => {
  const text = disk.read(KEY_FILES.state);
  const known = text === undefined ? undefined : parseKeyState(text, join(disk.folder, KEY_FILES.state));
  if (known && isHalfPromoted(disk, known)) disk.write(KEY_FILES.current, disk.read(KEY_FILES.next)!, PRIVATE);
  const { publicKey } = loadCurrent(disk);
  ensurePublic(disk, publicKey);
  const current = { publicKey, sinceMs: Math.round(disk.changedMs(KEY_FILES.current)) };
  if (!known) return { generation: 0, current };
  let state = known.current.publicKey === publicKey ? known : { ...known, current }; // another key was put there
  const next = readPrivate(disk, KEY_FILES.next)?.publicKey;
  if (state.next && (state.next.publicKey !== next || next === publicKey)) state = without(state, 'next');
  if (state.previous && state.previous.publicKey !== readPrivate(disk, KEY_FILES.previous)?.publicKey)
    state = without(state, 'previous');
  return JSON.stringify(state) === JSON.stringify(known) ? known : writeState(disk, state);
};

const ringKey = (disk: KeyDisk, name: string, rest: Pick<RingKey, 'generation' | 'sinceMs'>): RingKey => ({
  ...readPrivate(disk, name)!,
  file: join(disk.folder, name),
  ...rest,
});

export const openKeyRing = (where: string | KeyDisk, { previousMs, now }: KeyRingOptions): KeyRing => {
  const disk = typeof where === 'string' ? openKeyDisk(where) : where;
  let state = recover(disk);
  let keys: Pick<KeyRing, 'current' | 'next' | 'previous'>;
  let isTidy = false;

  const load = (changed: KeyState): void => {
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
      const isOver = state.previous !== undefined && now() >= state.previous.untilMs;
      if (isOver) load(writeState(disk, without(state, 'previous')));
      if (isTidy && !isOver) return false;
      if (!state.previous) disk.remove(KEY_FILES.previous);
      if (!state.next && isUnnamed) for (const name of [KEY_FILES.next, KEY_FILES.nextPublic]) disk.remove(name);
      isTidy = isUnnamed;
      return isOver;
    },
  };
};
