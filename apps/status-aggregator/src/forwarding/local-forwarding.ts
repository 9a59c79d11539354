import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Forwarding } from '@unbounded/status';
import type { ForwardingExchange, HeldForwarding } from '../intake.port.ts';
import { packJson } from '../redis/bounded-gzip.ts';
import { FORWARDING_LIMITS } from './forwarding.limits.ts';

/** Who is wanted, and what was answered: of one replica, in memory. */

const decompress = promisify(gunzip);

interface Answer {
  /** Compressed: some MiB as they are. */
  readonly packed: Buffer;
  readonly atMs: number;
}

/** @param elapsed milliseconds, monotonic */
export const createLocalForwarding = (elapsed: () => number, limits = FORWARDING_LIMITS): ForwardingExchange => {
  const wantedUntilMs = new Map<string, number>();
  const answers = new Map<string, Answer>();
  const prune = (): void => {
    const nowMs = elapsed();
    for (const [node, untilMs] of wantedUntilMs) if (untilMs <= nowMs) wantedUntilMs.delete(node);
    for (const [node, { atMs }] of answers) if (nowMs - atMs >= limits.heldMs) answers.delete(node);
  };
  const isWanted = (node: string): boolean => (wantedUntilMs.get(node) ?? -Infinity) > elapsed();
  const unpacked = async ({ packed, atMs }: Answer): Promise<HeldForwarding> => ({
    json: await decompress(packed),
    ageMs: elapsed() - atMs,
  });
  return {
    async want(node) {
      prune();
      if (!wantedUntilMs.has(node) && wantedUntilMs.size >= limits.mostNodes) return 'tooMany';
      wantedUntilMs.set(node, elapsed() + limits.wantedMs);
      const answer = answers.get(node);
      return answer ? { answer: await unpacked(answer) } : {};
    },
    isWanted: async (node) => isWanted(node),
    async answer(node, forwarding: Forwarding) {
      const packed = await packJson(forwarding);
      prune();
      if (isWanted(node)) answers.set(node, { packed, atMs: elapsed() });
    },
  };
};
