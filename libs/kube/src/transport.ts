import { type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders, request as httpRequest } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import { ApiError, IdleError, NoAnswerError, type Status, TransportError } from './api-error.ts';
import type { Connection } from './connection.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  /** Of the body; application/json when not set. */
  readonly contentType?: string;
  /** Of the answer, which is JSON whatever it says besides; application/json when not set. */
  readonly accept?: string;
  readonly signal?: AbortSignal;
  /** No byte for this long ends the request. */
  readonly idleTimeoutMs?: number;
  /** Of a stream: the server has taken the request, and its lines follow. */
  readonly onOpen?: (() => void) | undefined;
}

/** Told about every answer: for rest_client_requests_total and rest_client_request_duration_seconds. */
export type RequestObserver = (
  observation: {
    readonly method: string;
    readonly code: string;
    readonly host: string;
  },
  /** Until the answer began. */
  tookMs: number,
) => void;

export interface Transport {
  /** The parsed answer. @throws ApiError, TransportError */
  send(request: ApiRequest): Promise<unknown>;
  /** The answer as text. @throws ApiError, TransportError */
  sendText(request: ApiRequest): Promise<string>;
  /** The answer's lines, each parsed, until the server or `signal` ends it. @throws ApiError, TransportError */
  stream(request: ApiRequest): AsyncGenerator<unknown, void, undefined>;
  /** Where the API server is configured to be. */
  readonly server: URL;
  /** Addresses to which requests went, those of a proxy too, with when the last one did (performance.now), that one last. */
  readonly peerAddresses: ReadonlyMap<string, number>;
  close(): void;
}

/** What all requests of a transport share. */
interface Link {
  readonly connection: Connection;
  readonly peers: Map<string, number>;
}

/** A name can stand for many servers over time: the last ones are enough. */
const MOST_PEERS = 64;

const notePeer = (socket: Socket, peers: Map<string, number>): void => {
  const note = (): void => {
    if (socket.remoteAddress === undefined) return;
    peers.delete(socket.remoteAddress); // it becomes the last
    peers.set(socket.remoteAddress, performance.now());
    for (const oldest of peers.keys()) if (peers.size > MOST_PEERS) peers.delete(oldest);
  };
  if (socket.connecting) socket.once('connect', note);
  else note();
};

const DEFAULT_IDLE_TIMEOUT_MS = 30_000;
/** TCP and TLS. The kernel would try for two minutes, with longer and longer pauses, while a network that is back waits for a packet. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Of an answer that is read as a whole: one that goes on for ever, a byte at a time, holds up whoever waits for it. */
const LONGEST_ANSWER_MS = 300_000;
/** Refusals with Retry-After (429 Too Many Requests, 503) are repeated this often, as client-go does. */
const MAX_RETRIES = 10;
const MAX_RETRY_AFTER_S = 30;
const KEEP_ALIVE_PROBE_MS = 15_000;

const queryText = (query: ApiRequest['query']): string => {
  const entries = Object.entries(query ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as const],
  );
  return entries.length === 0 ? '' : `?${new URLSearchParams(Object.fromEntries(entries)).toString()}`;
};

const describe = ({ method, path }: ApiRequest): string => `${method} ${path}`;

/** At once on a connection that stands; one that takes too long ends the request. */
const whenConnected = (call: ApiRequest, outgoing: ClientRequest, socket: Socket, then: () => void): void => {
  const isPlain = outgoing.protocol === 'http:';
  if (outgoing.reusedSocket || (isPlain && !socket.connecting)) return then();
  const late = new TransportError(`${describe(call)}: no connection within ${CONNECT_TIMEOUT_MS} ms`);
  const timer = setTimeout(() => outgoing.destroy(late), CONNECT_TIMEOUT_MS);
  socket.once('close', () => clearTimeout(timer));
  socket.once(isPlain ? 'connect' : 'secureConnect', () => {
    clearTimeout(timer);
    then();
  });
};

const open = async ({ connection, peers }: Link, call: ApiRequest): Promise<IncomingMessage> => {
  const { server } = connection;
  const credentials = await connection.credentials();
  const body = call.body === undefined ? undefined : JSON.stringify(call.body);
  const options: RequestOptions = {
    ...credentials,
    method: call.method,
    headers: {
      ...(credentials.headers as OutgoingHttpHeaders),
      accept: call.accept ?? 'application/json',
      'user-agent': 'unbounded',
      ...(body === undefined
        ? {}
        : { 'content-type': call.contentType ?? 'application/json', 'content-length': Buffer.byteLength(body) }),
    },
    timeout: call.idleTimeoutMs ?? DEFAULT_IDLE_TIMEOUT_MS,
    ...(call.signal ? { signal: call.signal } : {}),
  };
  const url = new URL(server.pathname.replace(/\/$/, '') + call.path + queryText(call.query), server);
  return new Promise((resolve, reject) => {
    let answer: IncomingMessage | undefined;
    const outgoing = (url.protocol === 'http:' ? httpRequest : httpsRequest)(url, options, (response) => {
      answer = response;
      resolve(response);
    });
    let isConnected = false;
    outgoing.once('socket', (socket) => {
      socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
      notePeer(socket, peers);
      whenConnected(call, outgoing, socket, () => (isConnected = true));
    });
    outgoing.once('timeout', () => {
      if (answer) answer.destroy(new IdleError(`${describe(call)}: nothing more for ${options.timeout} ms`));
      else {
        const late = isConnected ? NoAnswerError : TransportError;
        outgoing.destroy(new late(`${describe(call)}: no answer for ${options.timeout} ms`));
      }
    });
    outgoing.once('error', (cause) => {
      if (cause instanceof TransportError) reject(cause);
      else reject(new TransportError(`${describe(call)}: ${cause.message}`, { cause }));
    });
    outgoing.end(body);
  });
};

const brokenOff = (call: ApiRequest, cause: unknown): TransportError =>
  cause instanceof IdleError ? cause : new TransportError(`${describe(call)}: the answer broke off`, { cause });

const readAll = async (call: ApiRequest, response: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  const late = new Error(`not complete after ${LONGEST_ANSWER_MS} ms`);
  const timer = setTimeout(() => response.destroy(late), LONGEST_ANSWER_MS);
  try {
    for await (const chunk of response) chunks.push(chunk as Buffer);
  } catch (cause) {
    throw brokenOff(call, cause);
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(chunks).toString('utf8');
};

const parse = (call: ApiRequest, text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new TransportError(`${describe(call)}: the answer is no JSON: ${text.slice(0, 120)}`, { cause });
  }
};

const refusal = (call: ApiRequest, status: number, text: string): ApiError => {
  let body: Status = {};
  try {
    body = JSON.parse(text) as Status;
  } catch {
    body = { message: text.trim().slice(0, 200) }; // some refusals (a proxy's, authentication) are plain text
  }
  return new ApiError(describe(call), status, body);
};

const observed = async (link: Link, call: ApiRequest, observe: RequestObserver): Promise<IncomingMessage> => {
  const beganMs = performance.now();
  let code = '<error>';
  try {
    const response = await open(link, call);
    code = String(response.statusCode ?? 0);
    return response;
  } finally {
    observe({ method: call.method, code, host: link.connection.server.host }, performance.now() - beganMs);
  }
};

/** Opens the request and gives an answer that is not a refusal, repeating it while the server asks us to wait. */
const accepted = async (link: Link, call: ApiRequest, observe: RequestObserver): Promise<IncomingMessage> => {
  for (let attempt = 0; ; attempt++) {
    const response = await observed(link, call, observe);
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return response;
    const text = await readAll(call, response);
    const retryAfter = Number(response.headers['retry-after']);
    if (attempt >= MAX_RETRIES || !(status === 429 || status >= 500) || !(retryAfter >= 0))
      throw refusal(call, status, text);
    await sleep(Math.min(retryAfter, MAX_RETRY_AFTER_S) * 1000, undefined, call.signal ? { signal: call.signal } : {});
  }
};

/** @throws TransportError when the connection breaks */
async function* readLines(call: ApiRequest, response: IncomingMessage): AsyncGenerator<string, void, undefined> {
  response.setEncoding('utf8');
  const chunks = response[Symbol.asyncIterator]() as AsyncIterator<string>;
  let rest = '';
  for (;;) {
    const next = await chunks.next().catch((cause: unknown) => {
      throw brokenOff(call, cause);
    });
    if (next.done) break;
    const lines = (rest + next.value).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  yield rest;
}

async function* streamLines(
  link: Link,
  call: ApiRequest,
  observe: RequestObserver,
): AsyncGenerator<unknown, void, undefined> {
  const response = await accepted(link, call, observe);
  call.onOpen?.();
  try {
    for await (const line of readLines(call, response)) if (line !== '') yield parse(call, line);
  } finally {
    response.destroy();
  }
}

export const createTransport = (connection: Connection, observe: RequestObserver = () => {}): Transport => {
  const link: Link = { connection, peers: new Map() };
  return {
    send: async (call) => parse(call, await readAll(call, await accepted(link, call, observe))),
    sendText: async (call) => readAll(call, await accepted(link, call, observe)),
    stream: (call) => streamLines(link, call, observe),
    server: connection.server,
    peerAddresses: link.peers,
    close: () => connection.close(),
  };
};
