import { mkdirSync, readFileSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { z } from 'zod';

/** What the relay's proxies say that they have come to. */

const port = z.int().min(1).max(65_535);
const stateSchema = z.object({
  proxies: z.array(z.object({ own: z.string(), peer: z.string(), wireGuardPort: port, port })),
  relays: z.array(z.object({ name: z.string(), connected: z.boolean(), problem: z.string().exactOptional() })),
  trust: z.string().exactOptional(),
});
type ProxyState = z.infer<typeof stateSchema>;

/** Keys are public ones, base64. */
export interface ProxiedLane {
  readonly own: string;
  readonly peer: string;
  readonly wireGuardPort: number;
}

const NOTHING: ProxyState = { proxies: [], relays: [] };

/** There is none before the proxies have written it, and none of what another version of them writes. */
const readState = (file: string): ProxyState => {
  try {
    return stateSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return NOTHING;
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
  close(): void;
}

/** Follows the file from now on; `onChange` when it says something else than before. */
export const watchProxyState = (file: string, onChange: () => void): WatchedState => {
  let said = '';
  let ports = new Map<string, number>();
  let relays: WatchedState['relays'] = { connected: [], away: [] };
  let problems = new Map<string, string>();
  let trust: string | undefined;
  const read = (): boolean => {
    const state = readState(file);
    const text = JSON.stringify(state);
    if (text === said) return false;
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
  const watcher = watch(dirname(file), (_, name) => {
    if (name === basename(file) && read()) onChange();
  });
  read();
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
    close: () => watcher.close(),
  };
};
