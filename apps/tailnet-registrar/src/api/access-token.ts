import { z } from 'zod';

import { TailnetApiError } from './api-error.ts';
import type { SendRequest } from './requests.ts';

/** Tokens of an OAuth client (RFC 6749 4.4): one is used until shortly before its end, and many who need one wait for the same request. */

export interface OAuthClient {
  readonly clientID: string;
  readonly clientSecret: string;
}

export interface AccessToken {
  /** @throws TailnetApiError and what `client` throws */
  get(signal: AbortSignal): Promise<string>;
  /** It was refused: the next one is another one. */
  drop(token: string): void;
}

const answer = z.object({ access_token: z.string().min(1), expires_in: z.number().positive().default(3600) });

const RENEWED_BEFORE_MS = 300_000;

interface Held {
  readonly token: string;
  readonly clientID: string;
  readonly clientSecret: string;
  readonly untilMs: number;
}

/**
 * @param client what the Secret has now: a token of former credentials is not used
 * @param now monotonic, milliseconds
 */
export const createAccessToken = (
  send: SendRequest,
  client: (signal: AbortSignal) => Promise<OAuthClient>,
  now: () => number,
): AccessToken => {
  let held: Held | undefined;
  let asking: Promise<Held> | undefined;

  const ask = async ({ clientID, clientSecret }: OAuthClient): Promise<Held> => {
    const { isThere, text } = await send({
      ...{ method: 'POST', path: '/api/v2/oauth/token', secrets: [clientSecret] },
      body: new URLSearchParams({
        ...{ client_id: clientID, client_secret: clientSecret, grant_type: 'client_credentials' },
      }),
      // Of nobody in particular: who asked first may go while others wait.
      signal: new AbortController().signal,
    });
    const parsed = isThere ? tokenIn(text) : undefined;
    if (!parsed)
      throw new TailnetApiError('POST /api/v2/oauth/token: the answer is no token', {
        failure: 'ControlServerUnreachable',
      });
    const validMs = parsed.expires_in * 1000;
    const untilMs = now() + Math.max(validMs - RENEWED_BEFORE_MS, validMs / 2);
    return { token: parsed.access_token, clientID, clientSecret, untilMs };
  };

  return {
    async get(signal) {
      const credentials = await client(signal);
      const isOf = (one: Held): boolean =>
        one.clientID === credentials.clientID && one.clientSecret === credentials.clientSecret && now() < one.untilMs;
      if (held && isOf(held)) return held.token;
      asking ??= ask(credentials).finally(() => (asking = undefined));
      held = await asking;
      signal.throwIfAborted();
      // Those who waited for a request with other credentials ask again, once.
      if (!isOf(held) && now() < held.untilMs) held = await ask(credentials);
      return held.token;
    },
    drop(token) {
      if (held?.token === token) held = undefined;
    },
  };
};

const tokenIn = (text: string): z.infer<typeof answer> | undefined => {
  try {
    return answer.parse(JSON.parse(text));
  } catch {
    return undefined; // zod and JSON.parse quote what they were given
  }
};
