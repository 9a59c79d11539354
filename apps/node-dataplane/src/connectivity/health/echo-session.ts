import { areEqual, createOutstanding, type Health, type Lost, nextHealth, resumed } from '@unbounded/health';
import { nextToken } from './echo-tokens.ts';
import { createLostSince } from './lost-since.ts';

/** The echoes through one gateway in one family: whether they come back. */

export interface EchoSettings {
  readonly intervalMs: number;
  readonly detectMultiplier: number;
}

export interface EchoSession {
  /** false: as many in a row were lost as make a path Unhealthy, and not as many have come back since. */
  readonly forwards: boolean;
  readonly settings: EchoSettings;
  /** While echoes are missed: since when. */
  readonly lost: Lost;
  /** When one came back last, on the clock of `performance`. */
  readonly returnedMs: number;
  update(settings: EchoSettings): void;
  /** Whether it was one that is waited for; one with another token is forged, and the own one goes on being waited for. */
  onReturned(echo: { readonly sequence: bigint; readonly token: Uint8Array }): 'returned' | 'unexpected' | 'token';
  /** An interval is over: what was sent before it is lost if it has not come back, and the next one is sent. */
  tick(): void;
}

export interface EchoSessionOptions {
  readonly settings: EchoSettings;
  /** What an earlier process found. */
  readonly forwards: boolean;
  /** Whether none can have come back yet. */
  readonly isStarting?: () => boolean;
  /** @returns whether it was sent: what was not cannot be lost */
  readonly transmit: (sequence: bigint, token: Uint8Array) => boolean;
  readonly onChange: () => void;
}

const SUSPECTED = new Set(['Unhealthy', 'Recovering']);

/** A gateway forwards until it is shown that it does not: its agent takes no part, so there is no time in which it is new. */
export const createEchoSession = ({ settings: first, forwards, ...options }: EchoSessionOptions): EchoSession => {
  let settings = first;
  let health: Health = resumed(forwards ? 'Healthy' : 'Unhealthy');
  let doesForward = forwards;
  let sequence = 0n;
  let returned = true; // before the first one nothing can be lost
  const lost = createLostSince(forwards ? performance.now() : -Infinity);
  let returnedMs = -Infinity;
  const outstanding = createOutstanding<Uint8Array>();

  const happened = (event: 'success' | 'failure'): void => {
    health = nextHealth(health, event, settings.detectMultiplier);
    const before = doesForward;
    doesForward = !SUSPECTED.has(health.state);
    if (doesForward !== before) options.onChange();
  };
  const tick = (): void => {
    if (!returned && !options.isStarting?.()) happened('failure');
    returned = false;
    const token = nextToken();
    if (!options.transmit(++sequence, token)) {
      returned = true;
      return;
    }
    outstanding.add(sequence, token);
    lost.sending(health.state);
  };

  return {
    get forwards() {
      return doesForward;
    },
    get settings() {
      return settings;
    },
    get lost() {
      return lost.of(settings);
    },
    get returnedMs() {
      return returnedMs;
    },
    update: (changed) => void (settings = changed),
    onReturned({ sequence: number, token }) {
      const sent = outstanding.get(number);
      if (!sent) return 'unexpected';
      if (!areEqual(sent, token)) return 'token';
      outstanding.take(number);
      returnedMs = performance.now();
      if (!returned) {
        returned = true;
        happened('success');
      }
      return 'returned';
    },
    tick,
  };
};
