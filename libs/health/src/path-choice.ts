/**
 * Whether a WireGuard peer is sent to directly or over the relay, from the answers to probes of the direct way. N is the
 * detect multiplier. Both ends run this machine and tell each other in every probe what they are (their stance), because
 * WireGuard follows its peer: an end that still sends over the relay pulls the other one's endpoint back there.
 */

export type Path = 'direct' | 'relay';

export const PATH_STATES = ['Relay', 'Ready', 'Direct', 'Held'] as const;
type PathState = (typeof PATH_STATES)[number];

/** What an end says of itself: on the relay; there, but it would go to direct if the other does; on direct. */
export type Stance = 'relay' | 'ready' | 'direct';

/**
 * reply, silence: an interval passed with, or without, an answer. peerWilling: the peer says that it is ready or on direct.
 * peerLeft: it says that it is on the relay and not ready. rested: the wait after a failure is over.
 */
const PATH_EVENTS = ['reply', 'silence', 'peerWilling', 'peerLeft', 'rested'] as const;
type PathEvent = (typeof PATH_EVENTS)[number];

interface Transition {
  readonly after: 1 | 'N';
  readonly to: PathState;
}

/**
 * Relay: direct is not proven. Ready: it is, both ways, and the peer is awaited. Direct: it is taken. Held: it failed, and
 * is not tried again for a time that grows when it fails soon again.
 */
const PATH_TABLE: Readonly<Record<PathState, Readonly<Partial<Record<PathEvent, Transition>>>>> = {
  Relay: { reply: { after: 'N', to: 'Ready' } },
  Ready: { silence: { after: 1, to: 'Relay' }, peerWilling: { after: 1, to: 'Direct' } },
  Direct: { silence: { after: 'N', to: 'Held' }, peerLeft: { after: 1, to: 'Relay' } },
  Held: { rested: { after: 1, to: 'Relay' } },
};

/** A path that carried for so long has proven itself: its next failure counts as the first. Milliseconds. */
export const STABLE_MS = 60_000;
/** The wait after a failure that came sooner: the first, doubled with each further one, at most the last. */
export const FIRST_HOLD_MS = 5000;
export const LONGEST_HOLD_MS = 300_000;

export interface PathChoice {
  readonly state: PathState;
  /** Length of the run of equal intervals (with a reply, or without) that ended with the last one, up to N. */
  readonly run: number;
  readonly last: 'reply' | 'silence' | undefined;
  /** What the peer said last. */
  readonly peer: Stance | undefined;
  /** How long the path has been direct, up to {@link STABLE_MS}; in Held how long it still waits. */
  readonly timeMs: number;
  /** The wait after the last failure; 0: none. */
  readonly holdMs: number;
}

export interface PathSettings {
  readonly intervalMs: number;
  /** At least 1. */
  readonly detectMultiplier: number;
}

/** How a path begins: on direct only if an agent of before left it there. */
export const startPath = (state: 'Relay' | 'Direct'): PathChoice => ({
  state,
  run: 0,
  last: undefined,
  peer: undefined,
  timeMs: 0,
  holdMs: 0,
});

/** The wait after a failure of a path that was direct for so long. */
const nextHold = ({ timeMs, holdMs }: PathChoice): number => {
  if (timeMs >= STABLE_MS) return 0;
  return holdMs === 0 ? FIRST_HOLD_MS : Math.min(2 * holdMs, LONGEST_HOLD_MS);
};

const enter = (choice: PathChoice, state: PathState): PathChoice => {
  if (state === 'Held') {
    const holdMs = nextHold(choice);
    return { ...choice, state, timeMs: holdMs, holdMs };
  }
  // Who follows the peer back to the relay does not wait: the peer does, and says when it is ready again.
  return { ...choice, state, timeMs: 0, run: 0, last: undefined };
};

const take = (choice: PathChoice, event: PathEvent, run: number, multiplier: number): PathChoice => {
  const transition = PATH_TABLE[choice.state][event];
  if (!transition || run < (transition.after === 'N' ? multiplier : 1)) return choice;
  return enter(choice, transition.to);
};

const met = (choice: PathChoice, multiplier: number): PathChoice => {
  if (choice.peer === undefined) return choice;
  return take(choice, choice.peer === 'relay' ? 'peerLeft' : 'peerWilling', 1, multiplier);
};

/** The peer said what it is. */
export const heardPeer = (choice: PathChoice, peer: Stance): PathChoice => met({ ...choice, peer }, 1);

const pass = (choice: PathChoice, intervalMs: number): PathChoice => {
  if (choice.state === 'Direct') return { ...choice, timeMs: Math.min(choice.timeMs + intervalMs, STABLE_MS) };
  return choice.state === 'Held' ? { ...choice, timeMs: Math.max(choice.timeMs - intervalMs, 0) } : choice;
};

/** An interval passed, with an answer to the request that began it or without. */
export const nextPath = (choice: PathChoice, event: 'reply' | 'silence', settings: PathSettings): PathChoice => {
  const { intervalMs, detectMultiplier: n } = settings;
  const passed = pass(choice, intervalMs);
  const run = Math.min(passed.last === event ? passed.run + 1 : 1, n);
  const rested = passed.state === 'Held' && passed.timeMs === 0 ? take(passed, 'rested', 1, n) : passed;
  const moved = take({ ...rested, run, last: event }, event, run, n);
  return moved.state === 'Ready' ? met(moved, n) : moved;
};

/** Ends a wait, because there is no relay to wait on. */
export const restPath = (choice: PathChoice): PathChoice => take(choice, 'rested', 1, 1);

export const stanceOf = ({ state }: PathChoice): Stance => {
  if (state === 'Direct') return 'direct';
  return state === 'Ready' ? 'ready' : 'relay';
};

/** What there is to choose from. */
export interface PathWays {
  readonly mode: 'auto' | 'always';
  /** There is a proxy for the peer on this node. */
  readonly hasProxy: boolean;
  /** Any relay is connected. */
  readonly isRelayUp: boolean;
  /** There is an address at which the peer may be reached directly. */
  readonly hasDirect: boolean;
}

/** The path to send by; undefined: there is none. An unproven direct way is better than a relay that nobody is connected to. */
export const choosePath = ({ state }: PathChoice, ways: PathWays): Path | undefined => {
  const { mode, hasProxy, isRelayUp, hasDirect } = ways;
  if (mode === 'always') return hasProxy ? 'relay' : undefined;
  if (hasDirect && (state === 'Direct' || !hasProxy || !isRelayUp)) return 'direct';
  return hasProxy ? 'relay' : undefined;
};

const HEADINGS: Readonly<Record<PathEvent, string>> = {
  reply: 'a reply comes',
  silence: 'an interval without a reply',
  peerWilling: 'the peer is ready or on direct',
  peerLeft: 'the peer is on the relay and not ready',
  rested: 'the wait is over',
};

const cell = (transition: Transition | undefined): string => {
  if (!transition) return 'stays';
  return transition.after === 'N' ? `${transition.to} after N in a row` : transition.to;
};

/** The table as Markdown, for docs/relay.md. */
export const pathTable = (): string =>
  [
    `| state | ${PATH_EVENTS.map((event) => HEADINGS[event]).join(' | ')} |`,
    `|---|${PATH_EVENTS.map(() => '---|').join('')}`,
    ...PATH_STATES.map(
      (state) => `| ${state} | ${PATH_EVENTS.map((event) => cell(PATH_TABLE[state][event])).join(' | ')} |`,
    ),
  ].join('\n');
