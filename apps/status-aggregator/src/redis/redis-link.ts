import type { Logger } from '@unbounded/telemetry';
import { createRedisClient, evaluate, type RedisConnection, type Reply } from './redis-client.ts';
import { isAnswer, isReadOnly, NO_ANSWER, RedisAway, RedisBusy, redisErrorText, refusalOf } from './redis-error.ts';
import type { RedisMetrics, RedisOperation } from './redis-metrics.ts';
import type { Script } from './scripts.ts';
import type { RedisAddress } from './redis-url.ts';

export interface RedisLinkOptions extends RedisConnection {
  readonly metrics: RedisMetrics;
  readonly logger: Logger;
}

/** The connection to Redis: up, or refused at once. Nothing waits for it to come back. */
export interface RedisLink {
  readonly isUp: boolean;
  /** Another one after each connection that was made. */
  readonly generation: number;
  /** @throws RedisAway at once where it is away, and after the time-out of a command at the latest; other errors are answers of Redis */
  run(
    operation: RedisOperation,
    script: Script,
    keys: readonly string[],
    args?: readonly (string | Buffer)[],
  ): Promise<Reply>;
  /** run_id of the server: another one may have other data. '' where it does not say. */
  serverId(): Promise<string>;
  connect(): void;
  close(): void;
}

/** A push beyond this is held in memory alone for now: answers have a bound, and so has what waits for them. */
const MOST_IN_FLIGHT = 512;
const OF_PUSHES: ReadonlySet<RedisOperation> = new Set(['publish', 'read', 'request']);

/** Logs the first of a row of the same failures of an operation. */
const createTeller = (logger: Logger, address: RedisAddress) => {
  const { host, port, isTls } = address;
  const told = new Map<RedisOperation, string>();
  return {
    failed: (operation: RedisOperation, error: unknown): void => {
      const text = redisErrorText(error);
      // A server without TLS takes the first message for half a line, and waits for the rest.
      const reason = isTls && text === NO_ANSWER ? `${text}: it may not speak TLS` : text;
      const isTold = [...told.values()].includes(reason);
      told.set(operation, reason);
      if (isTold) return;
      logger.warn({ host, port, reason }, 'Redis is away; reports are held in memory, and the view stands');
    },
    succeeded: (operation: RedisOperation): void => void told.delete(operation),
    up: (): void => {
      told.clear();
      logger.info({ host, port }, 'Redis answers');
    },
  };
};

export const createRedisLink = (options: RedisLinkOptions): RedisLink => {
  const { metrics, logger } = options;
  const teller = createTeller(logger, options.address);
  let [generation, inFlight, isClosed] = [0, 0, false];
  /** The connection is ready no more, though its end is not seen yet: a server that is frozen does not close it. */
  let cutGeneration = 0;
  const client = createRedisClient(options, logger);
  const isUp = (): boolean => client.status === 'ready' && generation !== cutGeneration && !isClosed;
  const cut = (asked: number): void => {
    if (asked !== generation || !isUp()) return;
    cutGeneration = generation;
    metrics.up(false);
    client.disconnect(true);
  };
  client.on('error', (error: unknown) => {
    if (isClosed) return;
    metrics.failed('connect');
    teller.failed('connect', error);
  });
  client.on('close', () => metrics.up(false));
  client.on('ready', () => {
    generation++;
    metrics.up(true);
    teller.up();
  });
  const guarded = async <T>(operation: RedisOperation, ask: () => Promise<T>): Promise<T> => {
    if (!isUp()) throw new RedisAway('Redis is away');
    if (inFlight >= MOST_IN_FLIGHT && OF_PUSHES.has(operation)) throw new RedisBusy('Redis is too slow');
    const asked = generation;
    inFlight++;
    try {
      const answer = await ask();
      teller.succeeded(operation);
      return answer;
    } catch (error) {
      metrics.failed(operation);
      teller.failed(operation, error);
      if (isAnswer(error) && !isReadOnly(error)) throw refusalOf(error);
      // What was not answered stays in the client's queue as long as the connection: that goes, and the queue with it.
      cut(asked);
      throw new RedisAway(redisErrorText(error));
    } finally {
      inFlight--;
    }
  };
  return {
    get isUp() {
      return isUp();
    },
    get generation() {
      return generation;
    },
    run: (operation, script, keys, args = []) => guarded(operation, () => evaluate(client, script, keys, args)),
    serverId: async () =>
      /^run_id:([0-9a-f]{8,64})\r?$/m.exec(await guarded('load', () => client.info('server')))?.[1] ?? '',
    connect: () => {
      client.connect().catch(() => {}); // 'error' has told, and it goes on trying
    },
    close: () => {
      isClosed = true;
      client.disconnect();
      metrics.up(false);
    },
  };
};
