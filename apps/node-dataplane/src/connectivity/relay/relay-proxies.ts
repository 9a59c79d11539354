import { join } from 'node:path';
import { relayTallies, relayUnit } from '@unbounded/keeper-protocol';
import { type Endpoint, trustDigest } from '@unbounded/relay-client';
import { removeFile } from '@unbounded/state-files';
import type { Logger } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import type { NeutralPlan } from '../../data-path/kernel-plan.ts';
import { rejectedRelayUnit } from '../kernel/keeper-units.ts';
import { stateFile } from '../../state/state-file.ts';
import { createStateFaults, type StateFaults } from '../../state/state-faults.ts';
import { type ProxiedLane, type WatchedState, watchProxyState } from './proxy-state.ts';
import { createRelayServices, isFoundRelays, type ManagedRelaySource } from './relay-services.ts';
import { type OwnKey, planRelayUnit, trustOf } from './relay-unit.plan.ts';
import { createSignOfLife } from './sign-of-life.ts';

/** Without a relay for so long a node says so: shorter gaps are those of a relay that is replaced. */
const AWAY_MS = 10_000;

/** Their process says every two seconds that it lives: one that has not for so long carries nothing, whatever it wrote last. */
const SILENT_MS = 30_000;

const SILENT: Problem = {
  reason: 'RelayUnavailable',
  message:
    "no relay is connected: the process of the relay's proxies has not said for half a minute that it lives: it does not run, or is stopped, and node-keeper, which would start it, may not run either",
};

const UNTRUSTED: Problem = {
  reason: 'RelayTrustIgnored',
  message:
    'node-keeper does not follow spec.relay.caBundle and staticKey of Mesh default: it is of an older version, or its log says why it refused them; its pods are replaced when they are deleted',
};

const unreadable = (why: string): Problem => ({
  reason: 'RelayStateUnreadable',
  message: `the agent cannot read what the relay's proxies of node-keeper report, and keeps the last known state: ${why}`,
});

export interface RelayProxiesOptions {
  /** RELAY_UNIT and RELAY_STATE, unless the keeper was told otherwise. */
  readonly unitFile: string;
  readonly stateFile: string;
  /** RELAY_TALLIES, with the sign of life of the proxies' process. */
  readonly talliesFile: string;
  /** Folder of what survives a reboot. */
  readonly stateDir: string;
  readonly keyOf: (generation: number) => OwnKey | undefined;
  /** undefined: there is no API server to ask. */
  readonly managed: ManagedRelaySource | undefined;
  readonly faults?: StateFaults;
  readonly logger: Logger;
  /** Milliseconds, monotonic. */
  readonly now?: () => number;
}

/** The relay's proxies on this node, which node-keeper runs: stand-ins of peers that a relay reaches. */
export interface RelayProxies {
  /** Asks for what the plan needs. */
  apply(plan: NeutralPlan): readonly Problem[];
  /** The endpoint by which WireGuard reaches the peer over the relay; undefined: there is no proxy for it (yet). */
  endpointOf(lane: ProxiedLane): string | undefined;
  /** Whether any relay is connected. */
  isUp(): boolean;
  /** Names of the relays that are connected, and of those that are not. */
  relays(): { readonly connected: readonly string[]; readonly away: readonly string[] };
  /** Ways by addresses to the managed relay, where the plan's is that and has been found. */
  waysOf(plan: NeutralPlan): readonly Endpoint[];
  /** What these say is another thing now. */
  onChange(handler: () => void): void;
  stop(): void;
}

/** Undefined: there are none. @throws Error where that cannot be read */
const beatsIn = (talliesFile: string): number | undefined => {
  try {
    return relayTallies.read(talliesFile).beats;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
};

/** What the proxies say, as long as their process lives. */
const watchLiving = (
  { stateFile: file, talliesFile, logger }: RelayProxiesOptions,
  { now, onChange }: { readonly now: () => number; readonly onChange: () => void },
) => {
  const life = createSignOfLife(() => beatsIn(talliesFile), now);
  let isSilent = false;
  const revive = (): void => {
    life.reset();
    isSilent = false;
  };
  const onUnwatched = (err: Error): void =>
    logger.warn({ err }, 'cannot watch the state of the relay’s proxies: it is read at each pass');
  const onState = (): void => {
    revive(); // who writes it lives
    onChange();
  };
  const state = watchProxyState(file, { onChange: onState, onUnwatched });
  return {
    state,
    isSilent: () => isSilent,
    /** @param isWanted without a unit there is no process. @returns whether something is known now that was not */
    look(isWanted: boolean): boolean {
      const wasSilent = isSilent;
      const isNews = state.refresh();
      if (isNews || !isWanted) revive();
      else isSilent = life.look() >= SILENT_MS;
      return isNews || isSilent !== wasSilent;
    },
    relays: (): WatchedState['relays'] => {
      const { connected, away } = state.relays;
      return isSilent ? { connected: [], away: [...connected, ...away] } : state.relays;
    },
  };
};

export const createRelayProxies = (options: RelayProxiesOptions): RelayProxies => {
  const { unitFile, stateDir, keyOf, managed, logger, now = () => performance.now() } = options;
  const faults = options.faults ?? createStateFaults();
  const handlers: (() => void)[] = [];
  const tell = (): void => {
    for (const handler of handlers) handler();
  };
  const living = watchLiving(options, { now, onChange: tell });
  const { state } = living;
  let wasWanted = false;
  let lastUpMs = now();

  const ask = (plan: NeutralPlan): readonly Problem[] => {
    if (!plan.relay) {
      services.stop();
      faults.attempt(unitFile, () => removeFile(unitFile));
      return [];
    }
    const found = services.of(plan.relay);
    // Also without a way to any relay: the proxies get their ports, and connect as soon as there is one.
    const unit = planRelayUnit(plan, found.services, keyOf);
    faults.attempt(unitFile, () => void relayUnit.write(unitFile, unit));
    return found.problems;
  };
  const foundFile = stateFile(join(stateDir, 'relay.json'), isFoundRelays, faults);
  const services = createRelayServices({ managed, foundFile, logger, onChange: tell });

  const reported = (plan: NeutralPlan): readonly Problem[] => [
    ...(state.unreadable === undefined ? [] : [unreadable(state.unreadable)]),
    ...rejectedRelayUnit(unitFile),
    ...away(plan),
  ];

  const away = ({ relay }: NeutralPlan): Problem[] => {
    if (living.isSilent()) {
      lastUpMs = now(); // those that follow have time to connect
      return [SILENT];
    }
    const { connected, away: names } = state.relays;
    const isFollowed = relay === undefined || trustDigest(trustOf(relay)) === state.trust;
    if (connected.length > 0 && isFollowed) lastUpMs = now();
    if (now() - lastUpMs < AWAY_MS) return [];
    if (connected.length > 0 || (names.length > 0 && !isFollowed)) return [UNTRUSTED];
    const told = names.map((name) => [name, state.problemOf(name)].filter(Boolean).join(' - '));
    const which = names.length === 0 ? 'node-keeper has not reported that its proxies run' : told.join(', ');
    return [{ reason: 'RelayUnavailable', message: `no relay is connected: ${which}` }];
  };

  return {
    apply(plan) {
      if (living.look(plan.relay !== undefined && wasWanted)) tell();
      if (!wasWanted) lastUpMs = now();
      wasWanted = plan.relay !== undefined;
      const problems = ask(plan);
      return plan.relay && problems.length === 0 ? reported(plan) : problems;
    },
    endpointOf: (lane) => state.endpointOf(lane),
    isUp: () => living.relays().connected.length > 0,
    relays: living.relays,
    waysOf: ({ relay }) => services.waysOf(relay),
    onChange: (handler) => void handlers.push(handler),
    stop: () => {
      services.stop();
      state.close();
    },
  };
};
