import type { NodeReport } from '@unbounded/status';
import type { Check, Socket } from '../stream/stream-client.ts';
import { subprotocolsOf } from '../stream/subprotocols.ts';

/** The aggregator's API, of the origin that the page is from and of no other. */

const API = 'v1alpha1/';
const REQUEST_MS = 10_000;

const urlOf = (path: string): URL => new URL(`${API}${path}`, document.baseURI);

const get = (path: string, token: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(urlOf(path), {
    headers: { ...headers, Authorization: `Bearer ${token}` },
    mode: 'same-origin',
    credentials: 'omit',
    redirect: 'error',
    cache: 'no-store',
    signal: AbortSignal.timeout(REQUEST_MS),
  });

export const connectStream =
  (token: string) =>
  (position: string | undefined): Socket => {
    const url = urlOf('stream');
    url.protocol = url.protocol === 'http:' ? 'ws:' : 'wss:';
    if (position !== undefined) url.searchParams.set('position', position);
    return new WebSocket(url, subprotocolsOf(token));
  };

export const checkPosition =
  (token: string): Check =>
  async (position) => {
    const etag = `W/"${encodeURIComponent(position ?? '')}"`;
    const response = await get('view', token, { 'If-None-Match': etag });
    void response.body?.cancel();
    if (response.status === 304) return 'current';
    if (response.status === 401) return 'unauthenticated';
    if (response.status === 403) return 'forbidden';
    return response.ok ? 'moved' : 'failed';
  };

export interface NodeAnswer {
  readonly report: NodeReport;
  readonly ageMs: number;
  /** Elapsed ms when it came. */
  readonly at: number;
}

/** undefined: the aggregator holds no report of it. @throws Error in words */
export const fetchNode = async (name: string, token: string): Promise<NodeAnswer | undefined> => {
  const response = await get(`nodes/${encodeURIComponent(name)}`, token);
  if (response.status === 404) return undefined;
  if (!response.ok) throw new Error(`the server answers ${response.status}`);
  return { ...((await response.json()) as Omit<NodeAnswer, 'at'>), at: performance.now() };
};
