import { createOutstanding, isNewer, type Newest, type PathProbe, type Stance } from '@unbounded/health';
import { formatEndpoint, parseEndpoint } from '@unbounded/wireguard';
import { createRequestFilter } from '../../thread/request-filter.ts';
import { startTicking } from '../../thread/ticking.ts';
import type { PathPeer } from './messages.ts';
import { createWayChooser, type Way } from './way.ts';

/** One lane to one peer: probes of the direct way, and by which way WireGuard is to send. */

/** Where probes go, and from which of our addresses; absent: the kernel's choice. */
export interface Target {
  readonly address: string;
  readonly port: number;
  readonly localAddress?: string;
}

/** What WireGuard has when a path begins. */
export interface Found {
  /** The peer's endpoint, where it is sent to directly, and there was a handshake lately. */
  readonly session: string | undefined;
  /** An agent of before left it so. */
  readonly isAdopted: boolean;
}

export interface WatchedPath {
  /** What WireGuard is to have; undefined: whatever it has. */
  readonly way: Way | undefined;
  /** Takes new settings; what was proven stays, unless the direct endpoint is another. */
  update(peer: PathPeer, isRelayUp: boolean): void;
  /** An authentic packet of the peer. */
  onProbe(probe: PathProbe, from: Target): 'counted' | 'replayed' | 'unexpected';
  /** WireGuard shook hands with the peer directly, and sends to this endpoint. */
  shookHands(endpoint: string): void;
  stop(): void;
}

export interface PathOptions {
  readonly peer: PathPeer;
  readonly isRelayUp: boolean;
  readonly found: Found;
  /** Of this process; greater than of any before it. */
  readonly nonce: bigint;
  readonly transmit: (probe: PathProbe, to: Target) => void;
  /** Whether WireGuard received from the peer directly within so many milliseconds. */
  readonly isHeardDirectly: (withinMs: number) => boolean;
  /** An interval without a reply on a direct path: the last question is soon of use. */
  readonly onDoubt: () => void;
  readonly onWay: () => void;
}

/** A peer whose agent is away is given up after this: nobody would notice that it does not hear us any more. */
const LONGEST_EXCUSE_MS = 60_000;
/** Health probes go through the tunnel once a second when nothing is set, and their replies: a living peer is heard within this. */
const HEARD_WITHIN_MS = 1500;

const targetOf = (endpoint: string | undefined): Target | undefined =>
  endpoint === undefined ? undefined : parseEndpoint(endpoint);

/** Where the peer is asked: at its planned address, else where it calls from. The last one that answered is its address. */
const createAddress = (peer: PathPeer, found: Found) => {
  let target = targetOf(peer.direct ?? found.session);
  let proven: Target | undefined;
  return {
    get target() {
      return target;
    },
    /** The direct endpoint. */
    text({ direct }: PathPeer): string | undefined {
      const known = proven ?? target;
      return direct ?? (known && formatEndpoint(known));
    },
    plan({ direct }: PathPeer): void {
      [target, proven] = [targetOf(direct) ?? target, undefined];
    },
    called: (from: Target) => void (target = from),
    answered: (asked: Target) => void (proven = asked),
  };
};

/** Packets with the peer: what is new, and what answers what. */
const createTalk = (nonce: bigint, transmit: PathOptions['transmit']) => {
  let sequence = 0n;
  let newestSaid: Newest | undefined;
  const outstanding = createOutstanding<Target>();
  const accepts = createRequestFilter();
  return {
    ask(to: Target, stance: Stance): void {
      outstanding.add(++sequence, to);
      transmit({ nonce, sequence, stance }, to);
    },
    answer(request: PathProbe, to: Target, stance: Stance): void {
      const answers = { nonce: request.nonce, sequence: request.sequence };
      transmit({ nonce, sequence: ++sequence, stance, answers }, to);
    },
    /** Whether a request is to be answered: copies of old ones are not. */
    accepts(request: PathProbe): boolean {
      if (!accepts(request)) return false;
      if (newestSaid && request.nonce < newestSaid.nonce) newestSaid = undefined; // its clock went back over a reboot
      return true;
    },
    /** Where the request went that is answered; undefined: none waits for it. */
    answered: ({ answers }: PathProbe): Target | undefined =>
      answers?.nonce === nonce ? outstanding.take(answers.sequence) : undefined,
    /** Whether what the peer says of itself is newer than what it said before: packets may overtake each other. */
    isNews(probe: PathProbe): boolean {
      const isNews = isNewer(newestSaid, probe);
      if (isNews) newestSaid = probe;
      return isNews;
    },
  };
};

/** What came in the interval that runs. */
const createInterval = (isHeardDirectly: PathOptions['isHeardDirectly']) => {
  let [isAsked, isHeard, isCalled, wasCalled] = [false, false, false, false];
  let heardAtMs: number | undefined;
  return {
    begin(asked: boolean): void {
      [isAsked, isHeard, isCalled, wasCalled] = [asked, false, false, isCalled];
    },
    heard(): void {
      [isHeard, heardAtMs] = [true, performance.now()];
    },
    called: () => void (isCalled = true),
    /** Undefined: nothing was asked, and nothing came. */
    get outcome(): 'reply' | 'silence' | undefined {
      if (isHeard) return 'reply';
      return isAsked ? 'silence' : undefined;
    },
    /**
     * A peer whose agent says nothing at all, as it is being replaced or knows no path probes, is not given up while WireGuard
     * hears from it directly. One that asks and does not hear us is: it has asked before we did, so it was there then.
     */
    isExcused(intervalMs: number): boolean {
      if (isCalled && wasCalled) return false;
      if (heardAtMs === undefined) return isHeardDirectly(HEARD_WITHIN_MS);
      return performance.now() - heardAtMs < LONGEST_EXCUSE_MS && isHeardDirectly(intervalMs);
    },
  };
};

export const createPath = (options: PathOptions): WatchedPath => {
  const { nonce, found, transmit, onDoubt, onWay } = options;
  let { peer, isRelayUp } = options;
  const interval = createInterval(options.isHeardDirectly);
  const address = createAddress(peer, found);
  const talk = createTalk(nonce, transmit);
  const situation = () => ({ peer, isRelayUp, direct: address.text(peer) });
  const ask = (): void => {
    if (address.target) talk.ask(address.target, chooser.stance);
  };
  const chooser = createWayChooser({ ...situation(), ...found, onWay, onStance: ask });

  const onSilence = (): void => {
    if (chooser.isDirect) onDoubt();
    if (!chooser.isAtBrink || !interval.isExcused(peer.intervalMs)) chooser.passed('silence');
  };
  const tick = (): void => {
    if (peer.mode === 'always') return;
    if (interval.outcome === 'reply') chooser.passed('reply');
    else if (interval.outcome === 'silence') onSilence();
    interval.begin(address.target !== undefined);
    ask();
  };
  const said = (probe: PathProbe): void => {
    if (talk.isNews(probe) && peer.mode === 'auto') chooser.peerSaid(probe.stance);
  };
  const onRequest = (probe: PathProbe, from: Target): void => {
    interval.called();
    if (peer.direct === undefined) address.called(from);
    said(probe);
    talk.answer(probe, from, chooser.stance);
  };

  return {
    get way() {
      return chooser.way;
    },
    update(changed, isUp) {
      const isElsewhere = changed.direct !== peer.direct;
      [peer, isRelayUp] = [changed, isUp];
      if (isElsewhere) {
        address.plan(peer);
        interval.begin(false);
      }
      chooser.update(situation());
    },
    onProbe(probe, from) {
      if (!probe.answers) {
        if (!talk.accepts(probe)) return 'replayed';
        onRequest(probe, from);
        return 'counted';
      }
      const asked = talk.answered(probe);
      if (!asked) return 'unexpected';
      interval.heard();
      address.answered(asked);
      chooser.update(situation());
      said(probe);
      return 'counted';
    },
    shookHands(endpoint) {
      chooser.shookHands(endpoint);
      if (address.target) return;
      address.called(parseEndpoint(endpoint)); // else nothing would judge it
      chooser.update(situation());
    },
    stop: startTicking(() => peer.intervalMs, tick),
  };
};
