/** How a request to the control server's REST API ended, as the conditions of records and of the Mesh name it. */
export type ApiFailure =
  /** No answer, or one that says "later", or none that can be understood. */
  | 'ControlServerUnreachable'
  | 'CredentialsRefused'
  /** The OAuth client may not give these tags. */
  | 'TagsRefused'
  /** Any other refusal. */
  | 'RequestRefused';

export class TailnetApiError extends Error {
  override readonly name = 'TailnetApiError';
  readonly failure: ApiFailure;
  /** Of the answer; absent: there was none. */
  readonly status: number | undefined;
  /** When the server wants to be asked again. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    { failure, status, retryAfterMs }: { failure: ApiFailure; status?: number; retryAfterMs?: number | undefined },
  ) {
    super(message); // without a cause: that of fetch may hold the request, and with it the credentials
    this.failure = failure;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

const LONGEST_WAIT_MS = 600_000;
const LONGEST_ANSWER = 200;
const SHORTEST_SECRET = 4;

/** Seconds or a date (RFC 9110 10.2.3), at most ten minutes: a server that is wrong about it does not stop us for a day. */
export const retryAfterMs = (header: string | null, nowMs: number): number | undefined => {
  if (header === null || header.trim() === '') return undefined;
  const waitMs = /^\s*\d+\s*$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(waitMs, 0), LONGEST_WAIT_MS);
};

/** What a server says may repeat what it was sent. */
export const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets
    .filter((secret) => secret.length >= SHORTEST_SECRET)
    .reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text);

/** The `message` of an answer, or its beginning: one line that can be printed. */
export const answerText = (body: string, secrets: readonly string[]): string => {
  let said = body;
  try {
    const { message } = JSON.parse(body) as { readonly message?: unknown };
    if (typeof message === 'string') said = message;
  } catch {
    // Any text of a proxy.
  }
  const line = withoutSecrets(said, secrets)
    .replaceAll(/[^\x20-\x7e]+/g, ' ')
    .trim();
  return line.length > LONGEST_ANSWER ? `${line.slice(0, LONGEST_ANSWER)}…` : line;
};

export const failureOf = (status: number, said: string): ApiFailure => {
  if (status === 401 || status === 403) return 'CredentialsRefused';
  if (status === 408 || status === 425 || status === 429 || status >= 500 || status < 400)
    return 'ControlServerUnreachable';
  return status === 400 && /\btags?\b/i.test(said) ? 'TagsRefused' : 'RequestRefused';
};
