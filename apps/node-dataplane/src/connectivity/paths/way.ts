import {
  choosePath,
  heardPeer,
  nextPath,
  type Path,
  type PathChoice,
  restPath,
  type Stance,
  stanceOf,
  startPath,
} from '@unbounded/health';
import type { PathPeer, PathReason } from './messages.ts';

/** By which way WireGuard is to send to a peer, and why: the state machine of a path with what it decides about. */

export interface Way {
  readonly path: Path;
  readonly endpoint: string;
  readonly reason: PathReason;
}

export interface WayChooser {
  /** Undefined: whatever WireGuard has. */
  readonly way: Way | undefined;
  /** What the peer is told. */
  readonly stance: Stance;
  readonly isDirect: boolean;
  /** It is on direct, and one more interval without a reply ends that. */
  readonly isAtBrink: boolean;
  /** An interval passed. */
  passed(event: 'reply' | 'silence'): void;
  peerSaid(stance: Stance): void;
  /**
   * WireGuard shook hands with the peer directly, and sends there: what carries is not left for a relay at which the peer may
   * not be yet. Until probes have said what direct is worth; afterwards this says nothing new.
   */
  shookHands(endpoint: string): void;
  /** Other settings, or another direct address. */
  update(situation: Situation): void;
}

export interface Situation {
  readonly peer: PathPeer;
  readonly isRelayUp: boolean;
  /** Where the peer is directly, as far as is known. */
  readonly direct: string | undefined;
}

export interface WayOptions extends Situation {
  /** Where WireGuard has shaken hands directly already. */
  readonly session: string | undefined;
  /** An agent of before left it so. */
  readonly isAdopted: boolean;
  readonly onWay: () => void;
  readonly onStance: () => void;
}

const isSame = (a: Way | undefined, b: Way | undefined): boolean =>
  a?.path === b?.path && a?.endpoint === b?.endpoint && a?.reason === b?.reason;

/** Probes have said what direct is worth: it was taken, or as many were lost in a row as end it. */
const isVerdict = ({ state, last, run }: PathChoice, { detectMultiplier }: PathPeer): boolean =>
  state === 'Direct' || state === 'Held' || (last === 'silence' && run >= detectMultiplier);

/** Why direct was left; undefined: it was not. */
const leftFor = (before: PathChoice, after: PathChoice): 'unanswered' | 'peer' | undefined => {
  if (before.state !== 'Direct' || after.state === 'Direct') return undefined;
  return after.state === 'Held' ? 'unanswered' : 'peer';
};

export const createWayChooser = ({ onWay, onStance, ...options }: WayOptions): WayChooser => {
  let situation: Situation = options;
  const isAdopted = options.isAdopted && options.session !== undefined;
  let choice = startPath(isAdopted ? 'Direct' : 'Relay');
  let provenBy: PathReason = isAdopted ? 'adopted' : 'validated';
  let left: PathReason = 'unvalidated';
  let way: Way | undefined;
  let isJudged = isAdopted;
  /** Where WireGuard shook hands directly, while direct is not judged. */
  let session = isAdopted ? undefined : options.session;

  const stance = (): Stance => (situation.peer.mode === 'always' ? 'relay' : stanceOf(choice));
  const reasonFor = (path: Path): PathReason => {
    if (situation.peer.mode === 'always') return 'always';
    if (path === 'relay') return left === 'unvalidated' && situation.direct === undefined ? 'noDirect' : left;
    return choice.state === 'Direct' ? provenBy : 'noRelay';
  };
  const choose = (): Way | undefined => {
    const { peer, isRelayUp, direct } = situation;
    const { mode, proxy } = peer;
    if (session !== undefined && mode === 'auto') return { path: 'direct', endpoint: session, reason: 'handshake' };
    const path = choosePath(choice, {
      mode,
      isRelayUp,
      hasProxy: proxy !== undefined,
      hasDirect: direct !== undefined,
    });
    return path && { path, endpoint: (path === 'relay' ? proxy : direct)!, reason: reasonFor(path) };
  };
  const go = (next: PathChoice, said = stance()): void => {
    left = leftFor(choice, next) ?? left;
    isJudged ||= isVerdict(next, situation.peer);
    if (isJudged) session = undefined;
    choice = situation.isRelayUp ? next : restPath(next);
    if (choice.state !== 'Direct') provenBy = 'validated';
    const chosen = choose();
    const isOther = !isSame(chosen, way);
    way = chosen;
    if (isOther) onWay();
    if (stance() !== said) onStance();
  };
  way = choose();

  return {
    get way() {
      return way;
    },
    get stance() {
      return stance();
    },
    get isDirect() {
      return choice.state === 'Direct';
    },
    get isAtBrink() {
      const silences = choice.last === 'silence' ? choice.run : 0;
      return choice.state === 'Direct' && silences + 1 >= situation.peer.detectMultiplier;
    },
    passed: (event) => go(nextPath(choice, event, situation.peer)),
    peerSaid: (said) => go(heardPeer(choice, said)),
    shookHands(endpoint) {
      if (isJudged || endpoint === session) return;
      session = endpoint;
      go(choice);
    },
    update(next) {
      const said = stance();
      const isReset = next.peer.direct !== situation.peer.direct || next.peer.mode === 'always';
      situation = next;
      if (isReset) [choice, left, session] = [startPath('Relay'), 'unvalidated', undefined];
      go(choice, said);
    },
  };
};
