import type { Measurements } from './messages.ts';

/** Counts and round trips between two readings. */
export interface Measuring {
  sent(): void;
  received(): void;
  echoSent(): void;
  echoReturned(): void;
  /** A packet that was not answered and changed nothing, or one that could not be sent. */
  rejected(reason: string): void;
  roundTrip(peer: string, ms: number): void;
  /** What there was since the last reading; undefined: nothing. */
  take(): Omit<Measurements, 'lossRatios'> | undefined;
}

/** Round trips kept between readings: with more, the first ones stand for all. */
const LARGEST_SAMPLE = 1000;
const MS_PER_S = 1000;

export const createMeasuring = (): Measuring => {
  let sent = 0;
  let received = 0;
  let [echoesSent, echoesReturned] = [0, 0];
  let rejected: Record<string, number> = {};
  let roundTrips: number[] = [];
  let rttMs = new Map<string, number>();
  return {
    sent: () => void sent++,
    received: () => void received++,
    echoSent: () => void echoesSent++,
    echoReturned: () => void echoesReturned++,
    rejected: (reason) => void (rejected[reason] = (rejected[reason] ?? 0) + 1),
    roundTrip(peer, ms) {
      rttMs.set(peer, ms);
      if (roundTrips.length < LARGEST_SAMPLE) roundTrips.push(ms / MS_PER_S);
    },
    take() {
      const taken = { sent, received, echoesSent, echoesReturned, rejected, roundTrips, rttMs };
      const hasAny = sent + received + echoesSent + echoesReturned + Object.keys(rejected).length > 0;
      sent = 0;
      received = 0;
      [echoesSent, echoesReturned] = [0, 0];
      rejected = {};
      roundTrips = [];
      rttMs = new Map();
      return hasAny ? taken : undefined;
    },
  };
};
