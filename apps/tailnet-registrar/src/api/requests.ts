import { answerText, failureOf, retryAfterMs, TailnetApiError } from './api-error.ts';

/** Requests to one server, few at a time, each bounded in time and size. */

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Below the API's URL. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | URLSearchParams;
  readonly longestAnswer?: number;
  /** What must be in no text that we make of the answer. */
  readonly secrets?: readonly string[];
  readonly signal: AbortSignal;
}

export interface RequestsOptions {
  readonly url: string;
  readonly fetch?: typeof globalThis.fetch;
  readonly timeoutMs?: number;
  readonly atATime?: number;
  /** Wall clock, milliseconds: Retry-After may be a date. */
  readonly now?: () => number;
  /** Monotonic, milliseconds. */
  readonly elapsed?: () => number;
}

/** The text of an answer, or the status of one that is not there (404, 410). @throws TailnetApiError */
export type SendRequest = (request: ApiRequest) => Promise<{ readonly isThere: boolean; readonly text: string }>;

const [DEFAULT_TIMEOUT_MS, DEFAULT_AT_A_TIME, LONGEST_ANSWER] = [10_000, 5, 65_536];

/** Runs so many at a time, in their order. */
const createGate = (atATime: number) => {
  let free = atATime;
  const waiting: (() => void)[] = [];
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => void waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  };
};

const readText = async (response: Response, longest: number): Promise<string> => {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of response.body ?? []) {
    length += part.byteLength;
    if (length > longest)
      throw new TailnetApiError(`the answer is longer than ${longest} bytes`, {
        ...{ failure: 'ControlServerUnreachable', status: response.status },
      });
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
};

/** Why there was no answer. Its code says it, and holds nothing of the request. */
const noAnswer = (error: unknown, what: string): TailnetApiError => {
  if (error instanceof TailnetApiError) return error;
  const { name, cause } = error as Error & { readonly cause?: { readonly code?: unknown } };
  const code = typeof cause?.code === 'string' ? cause.code : name;
  const said = name === 'TimeoutError' ? 'no answer in time' : `no answer (${code})`;
  return new TailnetApiError(`${what}: ${said}`, { failure: 'ControlServerUnreachable' });
};

export const createRequests = ({
  url,
  fetch = globalThis.fetch,
  timeoutMs = DEFAULT_TIMEOUT_MS,
  atATime = DEFAULT_AT_A_TIME,
  now = Date.now,
  elapsed = () => performance.now(),
}: RequestsOptions): SendRequest => {
  const gate = createGate(atATime);
  let pausedUntilMs = 0;

  const answerTo = async ({ method, path, headers, body, longestAnswer, signal }: ApiRequest) => {
    const response = await fetch(new URL(path, url), {
      ...{ method, redirect: 'manual', signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]) },
      headers: { accept: 'application/json', ...headers },
      ...(body === undefined ? {} : { body }),
    });
    return { response, text: await readText(response, longestAnswer ?? LONGEST_ANSWER) };
  };

  const send: SendRequest = async (request) => {
    const what = `${request.method} ${request.path}`;
    request.signal.throwIfAborted();
    const restMs = pausedUntilMs - elapsed();
    if (restMs > 0)
      throw new TailnetApiError(`${what}: not asked, because the server has said when it wants the next request`, {
        ...{ failure: 'ControlServerUnreachable', retryAfterMs: restMs },
      });
    const { response, text } = await answerTo(request).catch((error: unknown) => {
      request.signal.throwIfAborted();
      throw noAnswer(error, what);
    });
    const { status, headers } = response;
    if (response.ok) return { isThere: true, text };
    if (status === 404 || status === 410) return { isThere: false, text };
    const waitMs = retryAfterMs(headers.get('retry-after'), now());
    // It is meant for all of us, not for this request.
    if ((status === 429 || status === 503) && waitMs !== undefined) pausedUntilMs = elapsed() + waitMs;
    const said = answerText(text, request.secrets ?? []);
    const hint = status < 400 ? ', a redirect: apiURL must be the API itself' : said && `: ${said}`;
    throw new TailnetApiError(`${what}: ${status}${hint}`, {
      ...{ failure: failureOf(status, said), status, retryAfterMs: waitMs },
    });
  };
  return (request) => gate(() => send(request));
};
