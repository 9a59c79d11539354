import { lookup } from 'node:dns/promises';
import { isIP, isIPv4 } from 'node:net';

import type { Logger } from '@unbounded/telemetry';

import type { Clock } from './clock.ts';
import { type Endpoint, formatEndpoint } from './endpoint.ts';
import { Lookout } from './lookout.ts';
import { isPublicAddress } from './public-address.ts';

/** How often a name is looked up. */
const LOOKUP_MS = 30_000;
const ANSWER_WITHIN_MS = 10_000;

/** The addresses of a name, the best family first; may reject, or answer with none. */
export type Resolve = (name: string) => Promise<readonly string[]>;

/** As the system resolves names. */
export const systemResolve: Resolve = async (name) =>
  (await lookup(name, { all: true, order: 'verbatim' })).map(({ address }) => address);

/**
 * The relays behind a name. Addresses of a private network are those of replicas, and each is a relay of its own; if all
 * are public the name may be a balancer's, where two connections could reach the same relay and displace each other: then
 * it is one relay, by its name. A replica with addresses of both families is one: the family that comes first counts.
 */
export const relaysOf = (endpoint: Endpoint, answer: readonly string[]): Endpoint[] => {
  const nearby = answer.filter((address) => isIP(address) !== 0 && !isPublicAddress(address));
  const [first] = nearby;
  if (first === undefined) return [endpoint];
  const ofFamily = nearby.filter((address) => isIPv4(address) === isIPv4(first));
  return [...new Set(ofFamily)].sort().map((host) => ({ ...endpoint, host, serverName: endpoint.host }));
};

export interface AddressWatchOptions {
  readonly endpoint: Endpoint;
  readonly resolve: Resolve;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  /** The relays are these now; not called when nothing has changed. */
  readonly onRelays: (relays: readonly Endpoint[]) => void;
}

/** Addresses, or why there are none. */
const answerOf = async ({ endpoint, resolve, clock }: AddressWatchOptions): Promise<readonly string[] | string> => {
  const late = Promise.withResolvers<string>();
  const timer = clock.after(ANSWER_WITHIN_MS, () => late.resolve(`no answer within ${ANSWER_WITHIN_MS} ms`));
  try {
    return await Promise.race([resolve(endpoint.host), late.promise]);
  } catch (error) {
    return (error as Error).message;
  } finally {
    timer.cancel();
  }
};

/** Looks a name up now and then. An answer that is empty, late or an error changes nothing. */
export const watchAddresses = (options: AddressWatchOptions): Lookout<Endpoint> => {
  const { endpoint, clock, random, logger, onRelays } = options;
  return new Lookout({
    clock,
    random,
    againMs: LOOKUP_MS,
    textOf: (relays) => relays.map(formatEndpoint).join(' '),
    onFound: onRelays,
    onFailure: (failures, reason = 'the answer is empty') =>
      logger.warn({ relay: endpoint.host, failures }, `relay name not resolved: ${reason}`),
    async look() {
      const answer = await answerOf(options);
      if (typeof answer === 'string') return answer;
      return answer.length === 0 ? [] : relaysOf(endpoint, answer);
    },
  });
};
