import type { Forwarding, NodeReport } from '@unbounded/status';
import type { Check, Socket } from '../stream/stream-client.ts';
import { subprotocolsOf } from '../stream/subprotocols.ts';

/** The aggregator's API, of the origin that the page is from and of no other. */

const API = 'v1alpha1/';
const REQUEST_MS = 10_000;

const urlOf = (path: string): URL => new URL(`${API}${path}`, document.baseURI);

interface Asked {
  readonly headers?: Readonly<Record<string, string>>;
  /** Of who asked, and may want it no more. */
  readonly signal?: AbortSignal | undefined;
}

/** Ends after a while, and with what asks for it (`AbortSignal.any` is not in all of the browsers that we build for). */
const endOf = (asker: AbortSignal | undefined): AbortSignal => {
  const timeout = AbortSignal.timeout(REQUEST_MS);
  if (!asker) return timeout;
  const either = new AbortController();
  for (const signal of [asker, timeout]) {
    if (signal.aborted) either.abort(signal.reason);
    signal.addEventListener('abort', () => either.abort(signal.reason), { once: true, signal: either.signal });
  }
  return either.signal;
};

const get = (path: string, token: string, { headers, signal }: Asked = {}): Promise<Response> =>
  fetch(urlOf(path), {
    headers: { ...headers, Authorization: `Bearer ${token}` },
    mode: 'same-origin',
    credentials: 'omit',
    redirect: 'error',
    cache: 'no-store',
    signal: endOf(signal),
  });

export const connectStream =
  (token: string) =>
  (position: string | undefined): Socket => {
    const url = urlOf('stream');
    url.protocol = url.protocol === 'http:' ? 'ws:' : 'wss:';
    if (position !== undefined) url.searchParams.set('position', position);
    return new WebSocket(url, subprotocolsOf(token));
  };

/** Of the view that is answered: the tag has what hinders the replica as well, a line each after the position. */
const positionOf = (response: Response): string | undefined => {
  const [, encoded] = /^W\/"([^"]+)"$/.exec(response.headers.get('ETag') ?? '') ?? [];
  try {
    return encoded === undefined ? undefined : decodeURIComponent(encoded).split('\n')[0];
  } catch {
    return undefined;
  }
};

export const checkPosition =
  (token: string): Check =>
  async (position) => {
    const etag = `W/"${encodeURIComponent(position ?? '')}"`;
    const response = await get('view', token, { headers: { 'If-None-Match': etag } });
    void response.body?.cancel();
    if (response.status === 304) return 'current';
    if (response.status === 401) return 'unauthenticated';
    if (response.status === 403) return 'forbidden';
    if (!response.ok) return 'failed';
    // Else something hinders the server, which comes by the stream as well.
    return position === undefined || positionOf(response) !== position ? 'moved' : 'current';
  };

export interface NodeAnswer {
  readonly report: NodeReport;
  readonly ageMs: number;
  /** Elapsed ms when it came. */
  readonly at: number;
}

/** undefined: the aggregator holds no report of it. @throws Error in words */
export const fetchNode = async (name: string, token: string, signal?: AbortSignal): Promise<NodeAnswer | undefined> => {
  const response = await get(`nodes/${encodeURIComponent(name)}`, token, { signal });
  if (response.status === 404) return undefined;
  if (!response.ok) throw new Error(`the server answers ${response.status}`);
  return { ...((await response.json()) as Omit<NodeAnswer, 'at'>), at: performance.now() };
};

export interface NodesAnswer {
  /** By name, of those that have reported. */
  readonly nodes: Readonly<Record<string, Omit<NodeAnswer, 'at'>>>;
  /** To be asked for anew. */
  readonly left: readonly string[];
}

/** As the aggregator takes in one request. */
export const MOST_NAMES = 20;

/** @param names at most {@link MOST_NAMES} @throws Error in words */
export const fetchNodes = async (
  names: readonly string[],
  token: string,
  signal: AbortSignal,
): Promise<NodesAnswer> => {
  const response = await get(`nodes?names=${encodeURIComponent(names.join(','))}`, token, { signal });
  if (!response.ok) throw new Error(`the server answers ${response.status}`);
  return (await response.json()) as NodesAnswer;
};

export interface ForwardingAnswer {
  readonly forwarding: Forwarding;
  readonly ageMs: number;
}

/** What went wrong, as the server says it. */
const refusalOf = async (response: Response): Promise<string> => {
  const body = (await response.json().catch(() => ({}))) as { readonly message?: unknown };
  return typeof body.message === 'string' ? body.message : `the server answers ${response.status}`;
};

/** undefined: the node is asked, and has not answered yet. @throws Error in words */
export const fetchForwarding = async (
  name: string,
  token: string,
  signal: AbortSignal,
): Promise<ForwardingAnswer | undefined> => {
  const response = await get(`nodes/${encodeURIComponent(name)}/forwarding`, token, { signal });
  if (response.status === 202) return undefined;
  if (!response.ok) throw new Error(await refusalOf(response));
  return (await response.json()) as ForwardingAnswer;
};
