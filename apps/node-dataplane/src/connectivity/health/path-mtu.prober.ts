import {
  mtuAnswered,
  mtuLimit,
  mtuLost,
  PROBE_BYTES,
  raiseMtu,
  SMALLEST_MTU_BYTES,
  startMtuSearch,
} from '@unbounded/health';
import type { Family } from './messages.ts';
import type { Answer, Session } from './session.ts';

/** Finds what the path to a peer carries, by padded probes beside those of its health. */
export interface PathMtuProber {
  /** The largest packet, bytes, where it is less than the device allows. */
  readonly limitBytes: number | undefined;
  /** The largest packet that the device allows, bytes. */
  setCeiling(bytes: number): void;
  onAnswer(answer: Answer): void;
  /** The kernel refused to send: the device allows less. */
  onTooLarge(sequence: bigint): void;
  stop(): void;
}

/** IP and UDP headers, bytes. */
const HEADERS: Readonly<Record<Family, number>> = { 4: 28, 6: 48 };

/** A found size is confirmed this often: a black hole is found within it, and the search below it ends within 10 s, below 1200 bytes within 20 s. */
const CONFIRM_EVERY_MS = 5000;
/**
 * What is found below the ceiling is doubted: larger sizes are tried again after this, then after twice as long each time, up
 * to the PMTU_RAISE_TIMER of RFC 8899 section 5.1.1. A size that was lost in a bad moment does not stay for long.
 */
const FIRST_RAISE_MS = 5000;
const LAST_RAISE_MS = 600_000;
/** Between losses of a size that was to pass: a moment in which a path changes is no black hole. */
const SUSPICION_MS = 400;
/** While the peer is not healthy nothing can be told of sizes. */
const LOOK_AGAIN_MS = 1000;
/** Milliseconds: for an answer to either, and for the padded one once the small one, sent after it, has come. */
const LEAST_WAIT_MS = 200;
const MOST_WAIT_MS = 3000;
const BEHIND_MS = 50;

export interface PathMtuOptions {
  readonly session: Session;
  readonly ceilingBytes: number;
  readonly onFound: () => void;
}

const isHealthy = ({ verdict }: Session): boolean => verdict.state === 'Healthy' || verdict.state === 'Degraded';

const searchFor = ({ plan }: Session, bytes: number) => startMtuSearch(bytes, SMALLEST_MTU_BYTES[plan.family]);

export const createPathMtuProber = ({ session, ceilingBytes, onFound }: PathMtuOptions): PathMtuProber => {
  const headers = HEADERS[session.plan.family];
  let search = searchFor(session, ceilingBytes);
  let settledMs = performance.now();
  let raiseMs = FIRST_RAISE_MS;
  let waiting: { padded: bigint; control: bigint; sizeBytes: number; controlCame: boolean } | undefined;
  let timer: NodeJS.Timeout;
  let isStopped = false;
  const after = (ms: number, act: () => void): void => {
    clearTimeout(timer);
    if (!isStopped) timer = setTimeout(act, ms);
  };

  const take = (next: typeof search): void => {
    const before = search;
    search = next;
    waiting = undefined;
    if (search.isSettled && !before.isSettled) settledMs = performance.now();
    if (mtuLimit(search) !== mtuLimit(before)) onFound();
    const isSuspect = search.losses > 0 && (search.isSettled || search.candidateBytes === search.ceilingBytes);
    after(search.isSettled && search.losses === 0 ? CONFIRM_EVERY_MS : isSuspect ? SUSPICION_MS : 0, probe);
  };
  const probe = (): void => {
    if (!isHealthy(session)) return after(LOOK_AGAIN_MS, probe);
    if (search.isSettled && performance.now() - settledMs > raiseMs) {
      settledMs = performance.now();
      raiseMs = mtuLimit(search) === undefined ? FIRST_RAISE_MS : Math.min(2 * raiseMs, LAST_RAISE_MS);
      search = raiseMtu(search);
    }
    // The small one goes second: that it came says that the path was up after the padded one was sent.
    const sizeBytes = search.candidateBytes;
    const padded = session.send('pathMtu', sizeBytes - headers);
    const control = session.send('control', PROBE_BYTES);
    waiting = { padded, control, sizeBytes, controlCame: false };
    after(Math.min(Math.max(4 * (session.rttMs ?? 0), LEAST_WAIT_MS), MOST_WAIT_MS), giveUpSoon);
  };
  // Timers run before sockets are read: an answer that has come while this thread was held up must count first.
  const giveUpSoon = (): void => {
    const of = waiting;
    setImmediate(() => {
      if (waiting === of && !isStopped) giveUp();
    });
  };
  const giveUp = (): void => {
    if (!waiting?.controlCame) return after(LOOK_AGAIN_MS, probe); // the path is down: that says nothing of sizes
    take(mtuLost(search, waiting.sizeBytes));
  };
  after(Math.random() * LOOK_AGAIN_MS, probe);

  return {
    get limitBytes() {
      return mtuLimit(search);
    },
    setCeiling(bytes) {
      if (bytes !== search.ceilingBytes) take({ ...searchFor(session, bytes), foundBytes: search.foundBytes });
    },
    onAnswer({ purpose, sequence, sizeReceived, rttMs }) {
      if (!waiting) return;
      if (purpose === 'control' && sequence === waiting.control) {
        waiting.controlCame = true;
        after(Math.max(rttMs, BEHIND_MS), giveUpSoon);
      }
      if (purpose === 'pathMtu' && sequence === waiting.padded && sizeReceived === waiting.sizeBytes - headers)
        take(mtuAnswered(search, waiting.sizeBytes));
    },
    onTooLarge(sequence) {
      if (waiting?.padded === sequence) take(mtuLost(search, waiting.sizeBytes));
    },
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
};
