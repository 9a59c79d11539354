import {
  createOutstanding,
  type Health,
  type Lost,
  type MissedEchoes,
  NEW_PEER,
  NOTICE_BYTES,
  nextHealth,
  type ProbeEvent,
  type ProbeReply,
  type ProbeRequest,
  PROBE_BYTES,
  type ReachedSites,
  resumed,
} from '@unbounded/health';
import type { ProbePlan } from '@unbounded/topology';
import { createRequestFilter } from '../../thread/request-filter.ts';
import { startTicking } from '../../thread/ticking.ts';
import { createLossWindow } from './loss-window.ts';
import { createLostSince } from './lost-since.ts';
import type { Verdict } from './verdict-file.ts';

/** The probing of one peer in one family: requests at the interval of the link, and what their replies mean. */

/** What a request was sent for. */
export type Purpose = 'health' | 'control' | 'pathMtu';

/** A reply that counts, to a request of ours. */
export interface Answer {
  readonly purpose: Purpose;
  readonly sequence: bigint;
  /** Bytes of the request's payload as the peer received it. */
  readonly sizeReceived: number;
  readonly rttMs: number;
}

export interface Session {
  readonly plan: ProbePlan;
  readonly verdict: Verdict;
  readonly rttMs: number | undefined;
  /** Of the last health probes, at most 32, the share that was not answered in time; undefined before the first of them. */
  readonly lossRatio: number | undefined;
  /** While probes are missed: since when. */
  lost(): Lost;
  /** Its last probe was answered, or may yet be; false also before the first reply. */
  isAnswering(): boolean;
  /** Takes new settings; health stays. */
  update(plan: ProbePlan): void;
  /** Sends a request now; returns its number. */
  send(purpose: Purpose, size: number): bigint;
  /** Undefined: no request of ours waits for it, and it changes nothing. */
  onReply(reply: ProbeReply): Answer | undefined;
  /** Whether a request of the peer is to be answered: copies of old ones are not. */
  accepts(request: ProbeRequest): boolean;
  stop(): void;
}

export interface SessionOptions {
  readonly plan: ProbePlan;
  readonly nonce: bigint;
  /** What an earlier process knew of the peer. */
  readonly known?: Verdict;
  /** Whether the peers of an earlier process may be away because they start anew too: their silence then says nothing. */
  readonly isStarting?: () => boolean;
  /** The first reply to this process. */
  readonly onFirstReply?: () => void;
  /** Whether echoes through the peer are lost, which its own agent cannot know: requests tell it. */
  readonly missesEchoes?: () => MissedEchoes | undefined;
  readonly transmit: (request: ProbeRequest, plan: ProbePlan) => void;
  /** The state, the grace or the reached sites are others than before. */
  readonly onVerdict: () => void;
}

/** Time in which a peer that has never answered may carry when there is no other, at least. */
const GRACE_MS = 10_000;
const GRACE_DETECTIONS = 3;

const NS_PER_MS = 1e6;
const nowNs = (): bigint => process.hrtime.bigint();

const areSame = (a: ReachedSites | undefined, b: ReachedSites | undefined): boolean =>
  a === b ||
  (a?.truncated === b?.truncated &&
    a?.hashes.length === b?.hashes.length &&
    (a?.hashes.every((hash, index) => hash === b?.hashes[index]) ?? false));

/** Before the first probe none can have been lost, and none has been answered. */
const createProbeLosses = () => {
  const window = createLossWindow();
  let isFirst = true;
  return {
    /** The interval of a probe is over. */
    ended(isLost: boolean): void {
      if (!isFirst) window.add(isLost);
      isFirst = false;
    },
    ratio: () => window.ratio(),
  };
};

interface Sent {
  readonly purpose: Purpose;
  /** By our clock: the time in a reply is whatever the peer makes it. */
  readonly timeNs: bigint;
}

/** Requests that are sent, and what each is for until it is answered. */
const createRequests = ({
  nonce,
  transmit,
  missesEchoes,
}: Pick<SessionOptions, 'nonce' | 'transmit' | 'missesEchoes'>) => {
  let sequence = 0n;
  const outstanding = createOutstanding<Sent>();
  return {
    send(purpose: Purpose, bytes: number, plan: ProbePlan): bigint {
      const missed = missesEchoes?.();
      const size = Math.max(bytes, missed ? PROBE_BYTES + NOTICE_BYTES : 0);
      const timeNs = nowNs();
      outstanding.add(++sequence, { purpose, timeNs });
      const request = { type: 'request' as const, nonce, sequence, timeNs, size };
      transmit({ ...request, ...(missed ? { missesEchoes: missed } : {}) }, plan);
      return sequence;
    },
    /** The request that is answered; undefined: none of ours waits for it. */
    answered: (reply: ProbeReply): Sent | undefined =>
      reply.nonce === nonce ? outstanding.take(reply.sequence) : undefined,
  };
};

type Detection = Pick<ProbePlan, 'intervalMs' | 'detectMultiplier'>;

/** The state of the peer, and since when its probes are missed. */
const createPeerHealth = (known: Verdict | undefined, onChange: () => void) => {
  let health: Health = known ? resumed(known.state) : NEW_PEER;
  const lost = createLostSince();
  return {
    state: () => health.state,
    isAnswering: () => health.last === 'success',
    probing: () => lost.sending(health.state),
    happened(event: ProbeEvent, { detectMultiplier }: Detection): void {
      const { state } = health;
      health = nextHealth(health, event, detectMultiplier);
      if (health.state !== state) onChange();
    },
    lost: (settings: Detection): Lost => lost.of(settings),
  };
};

const graceMsOf = ({ intervalMs, detectMultiplier }: Detection): number =>
  Math.max(GRACE_MS, GRACE_DETECTIONS * intervalMs * detectMultiplier);

export const createSession = ({ plan, nonce, known, transmit, onVerdict, ...options }: SessionOptions): Session => {
  let settings = plan;
  const health = createPeerHealth(known, onVerdict);
  let graceOver = known?.graceOver ?? false;
  let sites = known?.sites;
  let rttMs: number | undefined;
  let heard = true; // before the first request nothing can have failed
  const losses = createProbeLosses();
  const requests = createRequests({ nonce, transmit, ...options });

  const answered = (reply: ProbeReply, tookMs: number): void => {
    if (rttMs === undefined) options.onFirstReply?.();
    rttMs = tookMs;
    const saidOther = !areSame(sites, reply.sites);
    sites = reply.sites;
    if (!heard) {
      heard = true;
      health.happened('success', settings);
    }
    if (saidOther) onVerdict();
  };
  const send = (purpose: Purpose, bytes: number): bigint => requests.send(purpose, bytes, settings);
  const tick = (): void => {
    const isExcused = rttMs === undefined && options.isStarting?.() === true;
    if (!heard && !isExcused) health.happened('failure', settings);
    if (!isExcused) losses.ended(!heard);
    heard = false;
    health.probing();
    send('health', PROBE_BYTES);
  };
  const stopTicking = startTicking(() => settings.intervalMs, tick);
  const endGrace = (): void => {
    graceOver = true;
    onVerdict();
  };
  const grace = setTimeout(endGrace, graceMsOf(plan));

  return {
    get plan() {
      return settings;
    },
    get verdict() {
      return { state: health.state(), graceOver, ...(sites ? { sites } : {}) };
    },
    get rttMs() {
      return rttMs;
    },
    get lossRatio() {
      return losses.ratio();
    },
    lost: () => health.lost(settings),
    isAnswering: () => health.isAnswering(),
    update: (changed) => void (settings = changed),
    send,
    onReply(reply) {
      const sent = requests.answered(reply);
      if (!sent) return undefined;
      const { purpose } = sent;
      const tookMs = Number(nowNs() - sent.timeNs) / NS_PER_MS;
      if (purpose === 'health') answered(reply, tookMs);
      return { purpose, sequence: reply.sequence, sizeReceived: reply.sizeReceived, rttMs: tookMs };
    },
    accepts: createRequestFilter(),
    stop() {
      stopTicking();
      clearTimeout(grace);
    },
  };
};
