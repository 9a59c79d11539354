import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Logger } from '@unbounded/telemetry';
import { Redis, type RedisOptions } from 'ioredis';
import type { RedisAddress } from './redis-url.ts';
import type { Script } from './scripts.ts';

export interface RedisConnection {
  readonly address: RedisAddress;
  /** Read at each connection: a Secret may change. */
  readonly passwordFile: string | undefined;
  /** PEM, read at each connection: an authority may change. Not set: the authorities that Node trusts. */
  readonly caFile: string | undefined;
  readonly commandTimeoutMs?: number;
}

/** What scripts answer: bulk strings are bytes. */
export type Reply = Buffer | number | null | readonly Reply[];

const COMMAND_TIMEOUT_MS = 1000;
const CONNECT_TIMEOUT_MS = 3000;
const DISCONNECT_TIMEOUT_MS = 200;
const LONGEST_RETRY_MS = 5000;

const retryDelayMs = (attempt: number, random: () => number = Math.random): number =>
  Math.round(Math.min(LONGEST_RETRY_MS, 100 * 2 ** Math.min(attempt, 10)) * (0.5 + random() / 2));

const read = (file: string | undefined): string | undefined =>
  file === undefined ? undefined : readFileSync(file, 'utf8').trim();

/** @throws the error of the system call */
const tlsOptions = ({ address, caFile }: RedisConnection) => ({
  servername: address.host,
  ...(caFile === undefined ? {} : { ca: readFileSync(caFile) }),
});

const clientOptions = (options: RedisConnection) => {
  const { host, port, database, username, isTls } = options.address;
  return {
    ...{ host, port, db: database, lazyConnect: true, enableOfflineQueue: false, autoResendUnfulfilledCommands: false },
    ...{ maxRetriesPerRequest: 0, connectTimeout: CONNECT_TIMEOUT_MS, disableClientInfo: true, noDelay: true },
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    commandTimeout: options.commandTimeoutMs ?? COMMAND_TIMEOUT_MS,
    ...(username === undefined ? {} : { username }),
    ...(isTls ? { tls: tlsOptions(options) } : {}),
  } satisfies RedisOptions;
};

const sha1Of = (lua: string): string => createHash('sha1').update(lua).digest('hex');

/** By its hash, or by its text where the server does not have it yet. */
export const evaluate = async (
  client: Redis,
  script: Script,
  keys: readonly string[],
  args: readonly (string | Buffer)[],
) => {
  const rest = [keys.length, ...keys, ...args];
  try {
    return (await client.callBuffer('EVALSHA', sha1Of(script.lua), ...rest)) as Reply;
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
    return (await client.callBuffer('EVAL', script.lua, ...rest)) as Reply;
  }
};

/** A client that connects when it is told to, and again whenever the connection ends; it keeps no command for later. */
export const createRedisClient = (options: RedisConnection, logger: Logger): Redis => {
  const password = (): string | undefined => {
    try {
      return read(options.passwordFile);
    } catch (error) {
      logger.warn({ err: error }, 'cannot read the password of Redis');
    }
  };
  const renewAuthority = (): void => {
    if (!client.options.tls) return;
    try {
      client.options.tls = tlsOptions(options);
    } catch (error) {
      logger.warn({ err: error }, 'cannot read the authorities of Redis; those of before count');
    }
  };
  const first = password();
  const client = new Redis({
    ...clientOptions(options),
    ...(first === undefined ? {} : { password: first }),
    retryStrategy: (attempt) => {
      const renewed = password();
      if (renewed !== undefined) client.options.password = renewed;
      renewAuthority();
      return retryDelayMs(attempt);
    },
  });
  return client;
};
