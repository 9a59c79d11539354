import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo } from 'node:net';

import { type Metrics } from '@unbounded/telemetry';

import { limitConnections } from './connection-limit.ts';

/** Name and readiness of what must be ready. */
export interface Check {
  readonly name: string;
  readonly isReady: boolean;
}

export interface HealthServer {
  /** The TCP port that was taken. */
  readonly port: number;
  close(): Promise<void>;
}

export interface HealthServerOptions {
  readonly port: number;
  readonly checks: () => readonly Check[];
  readonly metrics: Metrics;
}

/** Anybody may reach this port: a flood of connections, or of slow ones, takes no more than this. */
const MOST_CONNECTIONS = 64;
const LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 5000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 1000,
  maxHeaderSize: 8192,
} as const;

/** All who ask while the metrics are being rendered get the same answer. */
const renderedOnce = (metrics: Metrics): (() => Promise<string>) => {
  let running: Promise<string> | undefined;
  return () =>
    (running ??= metrics.render().finally(() => {
      running = undefined;
    }));
};

const answer = ({ checks, metrics }: HealthServerOptions): RequestListener => {
  const readiness = () => {
    const results = checks();
    const lines = results.map(({ name, isReady }) => `[${isReady ? '+' : '-'}]${name} ${isReady ? 'ok' : 'not ready'}`);
    return { status: results.every(({ isReady }) => isReady) ? 200 : 503, body: `${lines.join('\n')}\n` };
  };
  const render = renderedOnce(metrics);
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
    if (path !== '/metrics') return void plain(404, 'there are /healthz, /readyz and /metrics\n');
    render().then(
      (body) => response.writeHead(200, { 'content-type': metrics.contentType }).end(body),
      (error: unknown) => plain(500, `${String(error)}\n`),
    );
  };
};

/** `/healthz`: the process answers. `/readyz`: every check, 200 or 503. `/metrics`: Prometheus text. */
export const startHealthServer = async (options: HealthServerOptions): Promise<HealthServer> => {
  const server = createServer(LIMITS, answer(options));
  limitConnections(server, { most: MOST_CONNECTIONS });
  server.listen(options.port);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
