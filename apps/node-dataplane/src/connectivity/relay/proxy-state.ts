import { mkdirSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { relayState, type RelayState } from '@unbounded/keeper-protocol';
import { openWatcher } from '../../folder-watcher.ts';

/** What the relay's proxies say that they have come to. */

/** Keys are public ones, base64. */
export interface ProxiedLane {
  readonly own: string;
  readonly peer: string;
  readonly wireGuardPort: number;
}

const NOTHING: RelayState = { proxies: [], relays: [] };

/** There is none before the proxies have written it. Why it cannot be read, if so. */
const readState = (file: string): RelayState | Error => {
  try {
    return relayState.read(file);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? NOTHING : (error as Error);
  }
};

const textOf = ({ own, peer, wireGuardPort }: ProxiedLane): string => `${own} ${peer} ${wireGuardPort}`;

export interface WatchedState {
  endpointOf(lane: ProxiedLane): string | undefined;
  /** Names of the relays that are connected, and of those that are not. */
  readonly relays: { readonly connected: readonly string[]; readonly away: readonly string[] };
  /** Why that relay is away; undefined: it is not, or nobody knows. */
  problemOf(relay: string): string | undefined;
  /** Which trust the proxies follow. */
  readonly trust: string | undefined;
  /** Why the file cannot be read; what was known before stays. */
  readonly unreadable: string | undefined;
  /** Reads it again, for what no watcher told; whether it says something else than before. */
  refresh(): boolean;
  close(): void;
}

export interface WatchHandlers {
  /** It says something else than before. */
  readonly onChange: () => void;
  /** The folder cannot be watched: `refresh` alone shows what is new, and tries again. Called once for a reason. */
  readonly onUnwatched: (error: Error) => void;
}

/** Follows the file from now on. */
export const watchProxyState = (file: string, { onChange, onUnwatched }: WatchHandlers): WatchedState => {
  let said = '';
  let ports = new Map<string, number>();
  let relays: WatchedState['relays'] = { connected: [], away: [] };
  let problems = new Map<string, string>();
  let trust: string | undefined;
  let unreadable: string | undefined;
  const read = (): boolean => {
    const state = readState(file);
    const before = unreadable;
    unreadable = state instanceof Error ? state.message : undefined;
    if (state instanceof Error) return unreadable !== before;
    const text = JSON.stringify(state);
    if (text === said) return unreadable !== before;
    said = text;
    ports = new Map(state.proxies.map((proxy) => [textOf(proxy), proxy.port]));
    const named = (wanted: boolean): string[] =>
      state.relays.filter(({ connected }) => connected === wanted).map(({ name }) => name);
    relays = { connected: named(true), away: named(false) };
    problems = new Map(state.relays.flatMap(({ name, problem }) => (problem === undefined ? [] : [[name, problem]])));
    trust = state.trust;
    return true;
  };
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // First: what changes while it is read is read again. The folder, because the file is replaced.
  const watcher = openWatcher(dirname(file), (name) => name === basename(file) && read() && onChange(), onUnwatched);
  const refresh = (): boolean => {
    watcher.ensure();
    return read();
  };
  refresh();
  return {
    endpointOf: (lane) => {
      const found = ports.get(textOf(lane));
      return found === undefined ? undefined : `127.0.0.1:${found}`;
    },
    get relays() {
      return relays;
    },
    problemOf: (relay) => problems.get(relay),
    get trust() {
      return trust;
    },
    get unreadable() {
      return unreadable;
    },
    refresh,
    close: watcher.close,
  };
};
