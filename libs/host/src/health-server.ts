import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo } from 'node:net';

import { type Metrics } from '@unbounded/telemetry';

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

const answer = ({ checks, metrics }: HealthServerOptions): RequestListener => {
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
    if (path !== '/metrics') return void plain(404, 'there are /healthz, /readyz and /metrics\n');
    metrics.render().then(
      (body) => response.writeHead(200, { 'content-type': metrics.contentType }).end(body),
      (error: unknown) => plain(500, `${String(error)}\n`),
    );
  };
};

/** `/healthz`: the process answers. `/readyz`: every check, 200 or 503. `/metrics`: Prometheus text. */
export const startHealthServer = async (options: HealthServerOptions): Promise<HealthServer> => {
  const server = createServer(answer(options)).listen(options.port);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
