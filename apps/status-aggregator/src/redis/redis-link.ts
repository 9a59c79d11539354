import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Redis, type RedisOptions } from 'ioredis';
import type { Logger } from '@unbounded/telemetry';
import { isAnswer, RedisAway, redisErrorText } from './redis-error.ts';
import type { RedisMetrics, RedisOperation } from './redis-metrics.ts';
import type { Script } from './scripts.ts';
import type { RedisAddress } from './redis-url.ts';

export interface RedisLinkOptions {
  readonly address: RedisAddress;
  /** Read at each connection: a Secret may change. */
  readonly passwordFile: string | undefined;
  /** PEM. Not set: the authorities that Node trusts. */
  readonly caFile: string | undefined;
  readonly metrics: RedisMetrics;
  readonly logger: Logger;
  readonly commandTimeoutMs?: number;
}

/** What scripts answer: bulk strings are bytes. */
export type Reply = Buffer | number | null | readonly Reply[];

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

const COMMAND_TIMEOUT_MS = 1000;
const CONNECT_TIMEOUT_MS = 3000;
const LONGEST_RETRY_MS = 5000;
/** A push beyond this is held in memory alone for now: answers have a bound, and so has what waits for them. */
const MOST_IN_FLIGHT = 512;

export const retryDelayMs = (attempt: number, random: () => number = Math.random): number =>
  Math.round(Math.min(LONGEST_RETRY_MS, 100 * 2 ** Math.min(attempt, 10)) * (0.5 + random() / 2));

const read = (file: string | undefined): string | undefined =>
  file === undefined ? undefined : readFileSync(file, 'utf8').trim();

const clientOptions = (options: RedisLinkOptions) => {
  const { host, port, database, username, isTls } = options.address;
  return {
    ...{ host, port, db: database, lazyConnect: true, enableOfflineQueue: false, autoResendUnfulfilledCommands: false },
    ...{ maxRetriesPerRequest: 0, connectTimeout: CONNECT_TIMEOUT_MS, disableClientInfo: true, noDelay: true },
    commandTimeout: options.commandTimeoutMs ?? COMMAND_TIMEOUT_MS,
    ...(username === undefined ? {} : { username }),
    ...(isTls
      ? { tls: { servername: host, ...(options.caFile === undefined ? {} : { ca: readFileSync(options.caFile) }) } }
      : {}),
  } satisfies RedisOptions;
};

const sha1Of = (lua: string): string => createHash('sha1').update(lua).digest('hex');

const evaluate = async (client: Redis, script: Script, keys: readonly string[], args: readonly (string | Buffer)[]) => {
  const rest = [keys.length, ...keys, ...args];
  try {
    return (await client.callBuffer('EVALSHA', sha1Of(script.lua), ...rest)) as Reply;
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
    return (await client.callBuffer('EVAL', script.lua, ...rest)) as Reply;
  }
};

/** Logs the first of a row of the same failures. */
const createTeller = (logger: Logger, address: RedisAddress) => {
  const { host, port } = address;
  let told: string | undefined;
  return {
    failed: (error: unknown): void => {
      const reason = redisErrorText(error);
      if (reason === told) return;
      told = reason;
      logger.warn({ host, port, reason }, 'Redis is away; reports are held in memory, and the view stands');
    },
    up: (): void => {
      told = undefined;
      logger.info({ host, port }, 'Redis answers');
    },
  };
};

export const createRedisLink = (options: RedisLinkOptions): RedisLink => {
  const { metrics, logger, passwordFile } = options;
  const teller = createTeller(logger, options.address);
  let [generation, inFlight, isClosed] = [0, 0, false];
  const client = new Redis({
    ...clientOptions(options),
    retryStrategy: (attempt) => (renewPassword(), retryDelayMs(attempt)),
  });
  const renewPassword = (): void => {
    try {
      const password = read(passwordFile);
      if (password !== undefined) client.options.password = password;
    } catch (error) {
      logger.warn({ err: error }, 'cannot read the password of Redis');
    }
  };
  const isUp = (): boolean => client.status === 'ready' && !isClosed;
  client.on('error', (error: unknown) => {
    if (isClosed) return;
    metrics.failed('connect');
    teller.failed(error);
  });
  client.on('close', () => metrics.up(false));
  client.on('ready', () => {
    generation++;
    metrics.up(true);
    teller.up();
  });
  const guarded = async <T>(operation: RedisOperation, ask: () => Promise<T>): Promise<T> => {
    if (!isUp()) throw new RedisAway('Redis is away');
    if (inFlight >= MOST_IN_FLIGHT) throw new RedisAway('Redis is too slow');
    const asked = generation;
    inFlight++;
    try {
      return await ask();
    } catch (error) {
      metrics.failed(operation);
      teller.failed(error);
      if (isAnswer(error)) throw new Error(`Redis: ${redisErrorText(error)}`, { cause: undefined });
      // What was not answered stays in the client's queue as long as the connection: that goes, and the queue with it.
      if (asked === generation && client.status === 'ready') client.disconnect(true);
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
      renewPassword();
      client.connect().catch(() => {}); // 'error' has told, and it goes on trying
    },
    close: () => {
      isClosed = true;
      client.disconnect();
      metrics.up(false);
    },
  };
};
