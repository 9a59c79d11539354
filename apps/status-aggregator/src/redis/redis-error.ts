/**
 * What is said of an error of Redis. Errors of ioredis carry the command with its arguments, of which one may be the password and others
 * are reports: they are never logged as they are.
 */

/** The connection is of no use, or the command was not answered in time. */
export class RedisAway extends Error {}

/** So much is asked of it already that this was not asked: the connection is good. */
export class RedisBusy extends RedisAway {}

export const NO_ANSWER = 'no answer in time';

const KNOWN: readonly (readonly [pattern: RegExp, text: string])[] = [
  [/WRONGPASS|invalid password|invalid username-password/i, 'the password or the user is wrong (WRONGPASS)'],
  [/NOAUTH|Authentication required/i, 'a password is required (NOAUTH): --redis-password-file'],
  [/NOPERM/i, 'the user may not do this (NOPERM)'],
  [/\bOOM\b/, 'its memory is full (OOM)'],
  [/LOADING/, 'it is loading its data (LOADING)'],
  [/READONLY/, 'it is a read-only replica (READONLY)'],
  [/MISCONF/, 'it cannot save its data (MISCONF)'],
  [/WRONGTYPE/, 'a key of ours has another type (WRONGTYPE)'],
  [
    /wrong version number|packet length too long|WRONG_VERSION/i,
    'it does not speak TLS: redis:// instead of rediss://',
  ],
  [
    /SELF_SIGNED|self.signed|UNABLE_TO_|unable to (get|verify)/i,
    'its certificate is not of a trusted authority: --redis-ca-file',
  ],
  [/ALTNAME|altnames/i, 'its certificate is for another name'],
  [/CERT_HAS_EXPIRED|certificate has expired/i, 'its certificate has expired'],
  [/timed out|ETIMEDOUT/i, NO_ANSWER],
  [/ECONNREFUSED/, 'the connection is refused (ECONNREFUSED)'],
  [/ENOTFOUND|EAI_AGAIN/, 'its name does not resolve'],
];

const NO_MORE = 'the connection ended';

export const redisErrorText = (error: unknown): string => {
  if (!(error instanceof Error)) return NO_MORE;
  const { message } = error;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const known = KNOWN.find(([pattern]) => pattern.test(message) || pattern.test(code));
  // The first word of an answer of Redis is its kind; what follows may repeat arguments.
  return known?.[1] ?? /^[A-Z]{3,20}\b/.exec(message)?.[0] ?? (code === '' ? NO_MORE : code);
};

/** Without its command. */
export const refusalOf = (error: unknown): Error => new Error(`Redis: ${redisErrorText(error)}`);

/** The server at this address takes no writes; another one may by now. */
export const isReadOnly = (error: unknown): boolean => error instanceof Error && /^READONLY\b/.test(error.message);

/** It was answered: the connection is good. */
export const isAnswer = (error: unknown): boolean => error instanceof Error && error.name === 'ReplyError';
