/** Where Redis is, from `--redis-url`. The password is never part of it: command lines are seen by every user of a machine. */
export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  readonly database: number;
  readonly username: string | undefined;
  readonly isTls: boolean;
}

const VALID = 'must be redis://[USER@]HOST[:PORT][/DATABASE], or rediss:// for TLS';
const DEFAULT_PORT = 6379;
const MOST_DATABASES = 1024;

/** @throws Error without the text of the URL, which may hold a password by mistake */
export const parseRedisUrl = (text: string): RedisAddress => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !['redis:', 'rediss:'].includes(url.protocol) || url.hostname === '' || url.search !== '')
    throw new Error(`--redis-url: ${VALID}`);
  if (url.password !== '') throw new Error('--redis-url: must have no password: it belongs into --redis-password-file');
  const database = Number(url.pathname.replace(/^\//, '') || '0');
  if (!Number.isInteger(database) || database < 0 || database >= MOST_DATABASES)
    throw new Error(`--redis-url: ${VALID}`);
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? DEFAULT_PORT : Number(url.port),
    database,
    username: url.username === '' ? undefined : decodeURIComponent(url.username),
    isTls: url.protocol === 'rediss:',
  };
};
