import type { Link } from '@unbounded/netlink';
import type { Logger } from '@unbounded/telemetry';
import { probeAddress, type ProbeOutcome, type ProbeTimings } from './announce/address-probe.ts';
import type { OpenSocket } from './announce/announced-link.ts';
import { type Announcer, createAnnouncer } from './announce/announcer.ts';

/** Addresses on their LAN: asked for before they are taken, and announced when they are. */
export interface Claims {
  /** Nobody else has it; it is being asked, and a pass follows; or who has it. */
  stateOf(address: string, link: Link): 'free' | 'asked' | { readonly usedBy: string };
  /** It is on the device now. */
  taken(address: string, link: Link): void;
  /** Nothing is said of it any more. */
  released(address: string): void;
  close(): void;
}

export interface ClaimsParts {
  readonly open: OpenSocket;
  /** An answer has come, or none. */
  readonly onAnswer: () => void;
  readonly logger: Logger;
  /** Whether the node may use it at this moment: frames of one's own pass the fence. */
  readonly mayAnnounce: (address: string) => boolean;
  readonly announcer?: Announcer;
  /** Not set: about a second. */
  readonly timings?: ProbeTimings;
}

/** So old an answer counts: who was asked is to be taken at once, and another that has it may have given it up. */
const COUNTS_MS = { free: 5000, used: 20_000 } as const;

interface Answer extends Partial<Record<'mac', string>> {
  readonly isFree: boolean;
  readonly atMs: number;
}

const isCurrent = ({ isFree, atMs }: Answer): boolean =>
  performance.now() - atMs < (isFree ? COUNTS_MS.free : COUNTS_MS.used);

export const createClaims = ({ open, onAnswer, logger, mayAnnounce, ...parts }: ClaimsParts): Claims => {
  const timed = parts.timings ? { timings: parts.timings } : {};
  const answers = new Map<string, Answer>();
  const asking = new Set<string>();
  const ended = new AbortController();
  const announcer =
    parts.announcer ??
    createAnnouncer({
      open,
      mayAnnounce,
      onProblem: (address, error) =>
        logger.warn({ address, error: (error as Error).message }, 'cannot announce an egress address'),
    });

  const settle = (key: string, outcome: ProbeOutcome): void => {
    answers.set(key, { ...outcome, atMs: performance.now() });
    onAnswer();
  };
  const ask = async (key: string, address: string, { index, mac = '' }: Link): Promise<void> => {
    asking.add(key);
    try {
      settle(key, await probeAddress({ address, link: { index, mac }, open, signal: ended.signal, ...timed }));
    } catch (error) {
      // Not known: the next pass asks again.
      if (!ended.signal.aborted)
        logger.warn({ address, error: (error as Error).message }, 'cannot ask whether an egress address is free');
    } finally {
      asking.delete(key);
    }
  };

  return {
    stateOf(address, link) {
      // No LAN on which anybody could have it.
      if (link.hardwareType !== ETHERNET || link.mac === undefined) return 'free';
      const key = `${address} ${link.index} ${link.mac}`;
      const answer = answers.get(key);
      const isKnown = answer !== undefined && isCurrent(answer);
      if (!isKnown && !asking.has(key)) void ask(key, address, link);
      // Who had it a moment ago has it until it is known otherwise.
      if (answer && !answer.isFree) return { usedBy: answer.mac ?? 'another host' };
      return isKnown ? 'free' : 'asked';
    },
    taken(address, { index, mac, hardwareType }) {
      if (hardwareType === ETHERNET && mac !== undefined) announcer.announce(address, { index, mac });
    },
    released(address) {
      announcer.cancel(address);
      for (const key of answers.keys()) if (key.startsWith(`${address} `)) answers.delete(key);
    },
    close() {
      ended.abort();
      announcer.close();
    },
  };
};

/** ARPHRD_ETHER. */
const ETHERNET = 1;
