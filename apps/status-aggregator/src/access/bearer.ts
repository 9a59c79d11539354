import { createHash } from 'node:crypto';

/** Longer than any token that an API server issues, and shorter than what a header may hold. */
const MOST_TOKEN_CHARS = 12_288;

/** The token of an Authorization header (RFC 6750). */
export const bearerOf = (header: string | undefined): string | undefined => {
  const token = /^bearer +([\w.~+/-]+=*) *$/i.exec(header ?? '')?.[1];
  return token !== undefined && token.length <= MOST_TOKEN_CHARS ? token : undefined;
};

/** Caches know a token by this, so that no memory dump of theirs holds one. */
export const tokenKey = (token: string): string => createHash('sha256').update(token).digest('base64');

/** `exp` (RFC 7519) of a JWT; not checked: for tokens that the API server has accepted. Undefined: it is none, or has none. */
export const expiryOf = (token: string): Date | undefined => {
  const payload = token.split('.')[1];
  if (payload === undefined) return undefined;
  try {
    const { exp } = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as { exp?: unknown };
    return typeof exp === 'number' && Number.isFinite(exp) ? new Date(exp * 1000) : undefined;
  } catch {
    return undefined;
  }
};
