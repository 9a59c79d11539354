/**
 * The health of a peer, from the answers to its probes. N is the detect multiplier of the link: as many failures in a
 * row take a peer down as successes bring it back.
 */

export const PEER_STATES = ['New', 'Healthy', 'Degraded', 'Unhealthy', 'Recovering'] as const;
export type PeerState = (typeof PEER_STATES)[number];

/** success: a reply came. failure: an interval passed without one. */
export const PROBE_EVENTS = ['success', 'failure'] as const;
export type ProbeEvent = (typeof PROBE_EVENTS)[number];

export interface Health {
  readonly state: PeerState;
  /** Length of the run of equal events that ended with the last one, up to the detect multiplier. */
  readonly run: number;
  /** What the run is of; undefined before the first event. */
  readonly last: ProbeEvent | undefined;
}

/** A transition that is taken when the run is at least this long. */
interface Transition {
  readonly after: 1 | 'N';
  readonly to: PeerState;
}

/** The first transition whose run is long enough is taken; where none is, the state stays. */
const HEALTH_TABLE: Readonly<Record<PeerState, Readonly<Record<ProbeEvent, readonly Transition[]>>>> = {
  New: { success: [{ after: 'N', to: 'Healthy' }], failure: [] },
  Healthy: {
    success: [],
    failure: [
      { after: 'N', to: 'Unhealthy' },
      { after: 1, to: 'Degraded' },
    ],
  },
  Degraded: { success: [{ after: 1, to: 'Healthy' }], failure: [{ after: 'N', to: 'Unhealthy' }] },
  Unhealthy: {
    success: [
      { after: 'N', to: 'Healthy' },
      { after: 1, to: 'Recovering' },
    ],
    failure: [],
  },
  Recovering: { success: [{ after: 'N', to: 'Healthy' }], failure: [{ after: 1, to: 'Unhealthy' }] },
};

/** How every peer begins. */
export const NEW_PEER: Health = { state: 'New', run: 0, last: undefined };

/** A peer in a state that an earlier process found: its next events begin a run of their own. */
export const resumed = (state: PeerState): Health => ({ state, run: 0, last: undefined });

/** @param multiplier at least 1: the detect multiplier of the link */
export const nextHealth = (health: Health, event: ProbeEvent, multiplier: number): Health => {
  const run = Math.min(health.last === event ? health.run + 1 : 1, multiplier);
  const transitions = HEALTH_TABLE[health.state][event];
  if (transitions.length === 0 && health.last === event && health.run === run) return health; // as nearly always
  const taken = transitions.find(({ after }) => run >= (after === 'N' ? multiplier : after));
  return { state: taken?.to ?? health.state, run, last: event };
};

const cell = (state: PeerState, event: ProbeEvent): string => {
  const words = HEALTH_TABLE[state][event].map(({ after, to }) => `${to} after ${after === 'N' ? 'N in a row' : '1'}`);
  return words.length === 0 ? 'stays' : words.join(', else ');
};

/** The table as Markdown, for docs/health.md. */
export const healthTable = (): string =>
  [
    '| state | a reply comes | an interval without a reply |',
    '|---|---|---|',
    ...PEER_STATES.map((state) => `| ${state} | ${cell(state, 'success')} | ${cell(state, 'failure')} |`),
  ].join('\n');
