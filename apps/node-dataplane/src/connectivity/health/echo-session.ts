import { createOutstanding, type Health, nextHealth, resumed } from '@unbounded/health';
import { startTicking } from '../../thread/ticking.ts';

/** The echoes through one gateway in one family: whether they come back. */

export interface EchoSettings {
  readonly intervalMs: number;
  readonly detectMultiplier: number;
}

export interface EchoSession {
  /** false: as many in a row were lost as make a path Unhealthy, and not as many have come back since. */
  readonly forwards: boolean;
  update(settings: EchoSettings): void;
  /** @returns whether it was one that is waited for */
  onReturned(sequence: bigint): boolean;
  stop(): void;
}

export interface EchoSessionOptions {
  readonly settings: EchoSettings;
  /** What an earlier process found. */
  readonly forwards: boolean;
  /** Whether none can have come back yet. */
  readonly isStarting?: () => boolean;
  readonly transmit: (sequence: bigint) => void;
  readonly onChange: () => void;
}

const SUSPECTED = new Set(['Unhealthy', 'Recovering']);

/** A gateway forwards until it is shown that it does not: its agent takes no part, so there is no time in which it is new. */
export const createEchoSession = ({ settings: first, forwards, ...options }: EchoSessionOptions): EchoSession => {
  let settings = first;
  let health: Health = resumed(forwards ? 'Healthy' : 'Unhealthy');
  let sequence = 0n;
  let returned = true; // before the first one nothing can be lost
  const outstanding = createOutstanding<true>();
  const doesForward = (): boolean => !SUSPECTED.has(health.state);

  const happened = (event: 'success' | 'failure'): void => {
    const before = doesForward();
    health = nextHealth(health, event, settings.detectMultiplier);
    if (doesForward() !== before) options.onChange();
  };
  const tick = (): void => {
    if (!returned && !options.isStarting?.()) happened('failure');
    returned = false;
    outstanding.add(++sequence, true);
    options.transmit(sequence);
  };
  const stop = startTicking(() => settings.intervalMs, tick);

  return {
    get forwards() {
      return doesForward();
    },
    update: (changed) => void (settings = changed),
    onReturned(number) {
      if (!outstanding.take(number)) return false;
      if (!returned) {
        returned = true;
        happened('success');
      }
      return true;
    },
    stop,
  };
};
