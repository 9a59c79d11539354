import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Metrics } from '@unbounded/telemetry';

import { limitConnections } from './connection-limit.ts';

/** Name and readiness of what must be ready. */
export interface Check {
  readonly name: string;
  readonly isReady: boolean;
}

/** Where one listener stands. */
export interface ListenerState {
  readonly address: string;
  /** Why it does not listen (EADDRINUSE, …); undefined: it does. */
  readonly error?: string;
}

export interface HealthServer {
  /** The TCP port that was taken; 0 while every listener waits for its port. */
  readonly port: number;
  /** Every address with what is wrong with it. */
  readonly listeners: readonly ListenerState[];
  close(): Promise<void>;
}

export interface HealthServerOptions {
  readonly port: number;
  /** See {@link listenAddresses}; loopback alone when not set. An empty text listens on every address. */
  readonly addresses?: readonly string[];
  readonly checks: () => readonly Check[];
  readonly metrics: Metrics;
  /** Told when a listener fails, and when it listens after all. */
  readonly onListener?: (state: ListenerState) => void;
  readonly limits?: Partial<Limits>;
}

/** What strangers may cost. Prometheus scrapes every 15 to 60 s, kubelet probes every few seconds: a handful of connections. */
interface Limits {
  /** Connections of a listener; beyond it the oldest of the address with the most is closed. */
  readonly connections: number;
  /** For the head of a request to arrive, for all of it, and for an idle connection, milliseconds. */
  readonly headersMs: number;
  readonly requestMs: number;
  readonly idleMs: number;
  /** For the answer to be taken, milliseconds. */
  readonly responseMs: number;
  /** A port that is taken is tried again after so long, milliseconds. */
  readonly retryMs: number;
}

const LIMITS: Limits = {
  connections: 64,
  headersMs: 5000,
  requestMs: 10_000,
  idleMs: 5000,
  responseMs: 15_000,
  retryMs: 5000,
};

const LOOPBACK = '127.0.0.1';

/** One rendering serves everybody who asks meanwhile. */
const sharedRender = (metrics: Metrics): (() => Promise<string>) => {
  let rendering: Promise<string> | undefined;
  return () => (rendering ??= metrics.render().finally(() => (rendering = undefined)));
};

const METRICS = '/metrics';

/**
 * Where to listen: on loopback, for the kubelet's probes (`host: 127.0.0.1`), and for metrics alone on what a flag names, addresses
 * comma-separated. An unspecified address (0.0.0.0, ::) holds loopback too.
 */
export const listenAddresses = (flag: string | undefined): string[] => {
  const named = (flag ?? '')
    .split(',')
    .map((text) => text.trim())
    .filter(Boolean);
  const everywhere = named.find((address) => UNSPECIFIED.has(address));
  return everywhere === undefined ? [...new Set([LOOPBACK, ...named])] : [everywhere];
};

const UNSPECIFIED = new Set(['0.0.0.0', '::']);
/** Readiness names parts of the program and is the kubelet's business: other addresses give metrics alone. */
const isForEverything = (address: string): boolean =>
  address === '' || address === LOOPBACK || UNSPECIFIED.has(address);

const onlyMetrics =
  (listener: RequestListener): RequestListener =>
  (request, response) => {
    if ((request.url ?? '').split('?')[0] === METRICS) return listener(request, response);
    return void response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end('there is /metrics\n');
  };

const answer = ({ checks, metrics }: HealthServerOptions): RequestListener => {
  const render = sharedRender(metrics);
  const readiness = () => {
    const results = checks();
    const lines = results.map(({ name, isReady }) => `[${isReady ? '+' : '-'}]${name} ${isReady ? 'ok' : 'not ready'}`);
    return { status: results.every(({ isReady }) => isReady) ? 200 : 503, body: `${lines.join('\n')}\n` };
  };
  return (request, response) => {
    const path = (request.url ?? '').split('?')[0];
    const plain = (status: number, body: string) =>
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(body);
    if (request.method !== 'GET' && request.method !== 'HEAD') return void plain(405, 'only GET is answered\n');
    if (path === '/healthz') return void plain(200, 'ok\n');
    if (path === '/readyz') {
      const { status, body } = readiness();
      return void plain(status, body);
    }
    if (path !== METRICS) return void plain(404, 'there are /healthz, /readyz and /metrics\n');
    render().then(
      (body) => response.writeHead(200, { 'content-type': metrics.contentType }).end(body),
      (error: unknown) => plain(500, `${String(error)}\n`),
    );
  };
};

const boundedServer = (listener: RequestListener, limits: Limits): Server => {
  const { headersMs, requestMs, idleMs, responseMs } = limits;
  const timeouts = { headersTimeout: headersMs, requestTimeout: requestMs, keepAliveTimeout: idleMs };
  const server = createServer({ ...timeouts, connectionsCheckingInterval: Math.min(1000, headersMs) }, listener);
  limitConnections(server, { most: limits.connections });
  server.on('connection', (socket) => {
    // Also one that sends nothing, or takes its answer byte by byte.
    socket.setTimeout(Math.max(headersMs, idleMs), () => socket.destroy());
  });
  server.on('request', (_, response) => {
    const late = setTimeout(() => response.destroy(), responseMs);
    response.once('close', () => clearTimeout(late));
  });
  return server;
};

/** Listens on one address; while the port is taken, tries again. */
class Listener {
  readonly #server: Server;
  readonly #retryMs: number;
  readonly #onState: (state: ListenerState) => void;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  state: ListenerState;

  constructor(address: string, server: Server, retryMs: number, onState: (state: ListenerState) => void) {
    this.#server = server;
    this.#retryMs = retryMs;
    this.#onState = onState;
    this.state = { address };
  }

  get port(): number {
    return (this.#server.address() as AddressInfo | null)?.port ?? 0;
  }

  /** Resolves after the first attempt, whatever its outcome. */
  listen(port: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const host = this.state.address;
    this.#server.on('error', (error: NodeJS.ErrnoException) => {
      this.#change(error.code ?? error.message);
      if (!this.#isClosed) this.#timer = setTimeout(() => this.#server.listen({ port, host }), this.#retryMs);
      resolve();
    });
    this.#server.on('listening', () => {
      this.#change(undefined);
      resolve();
    });
    this.#server.listen(host === '' ? { port } : { port, host });
    return promise;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#server.closeAllConnections();
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve));
  }

  #change(error: string | undefined): void {
    const isNews = error !== this.state.error;
    const { address } = this.state;
    this.state = error === undefined ? { address } : { address, error };
    if (isNews) this.#onState(this.state);
  }
}

/**
 * `/healthz`: the process answers. `/readyz`: every check, 200 or 503. `/metrics`: Prometheus text. Never throws: a port that
 * is taken is told by `listeners` and tried again.
 */
export const startHealthServer = async (options: HealthServerOptions): Promise<HealthServer> => {
  const { port, addresses = [LOOPBACK], onListener = () => undefined } = options;
  const limits = { ...LIMITS, ...options.limits };
  const handler = answer(options);
  const listeners: Listener[] = [];
  let taken = port;
  for (const address of new Set(addresses)) {
    const server = boundedServer(isForEverything(address) ? handler : onlyMetrics(handler), limits);
    const listener = new Listener(address, server, limits.retryMs, onListener);
    listeners.push(listener);
    await listener.listen(taken); // a free port that the first one took is everybody's
    taken = listener.port || taken;
  }
  return {
    get port() {
      return listeners.find((listener) => listener.port !== 0)?.port ?? 0;
    },
    get listeners() {
      return listeners.map(({ state }) => state);
    },
    close: async () => {
      await Promise.all(listeners.map((listener) => listener.close()));
    },
  };
};
