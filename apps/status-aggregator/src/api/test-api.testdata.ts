import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { type ClusterView, type NodeReport, parseForwarding, type Push } from '@unbounded/status';
import { makeSelfSigned } from '@unbounded/testing/self-signed';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { WebSocket } from 'ws';

import type { Verdict } from '../access/verdict.ts';
import { createLocalForwarding } from '../forwarding/local-forwarding.ts';
import type { ViewUpdate } from '../intake.port.ts';
import type { ApiOptions, ServedCertificate } from './api.options.ts';
import { edgeMetrics } from './edge-metrics.ts';
import { createApiPart } from './api.part.ts';

/** An edge on loopback, with ports and reviewers of the test. */

let made: ServedCertificate | undefined;
/** Self-signed; made once. */
export const testCertificate = (): ServedCertificate => (made ??= makeCertificate('localhost'));

export const makeCertificate = (name: string): ServedCertificate => {
  const folder = mkdtempSync(join(tmpdir(), 'status-api-'));
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
  makeSelfSigned(name, { key, cert });
  const pem = { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
  rmSync(folder, { recursive: true });
  return pem;
};

export const unauthenticated = { isGranted: false, status: 401, reason: 'Unauthenticated', message: 'no' } as const;
export const denied = { isGranted: false, status: 403, reason: 'Forbidden', message: 'no' } as const;

/** A view that the test moves on. */
const testView = () => {
  const subscribers = new Set<(update: ViewUpdate) => void>();
  const updates: ViewUpdate[] = [];
  let view: unknown;
  let notices: readonly string[] = [];
  return {
    notices: () => notices,
    hinder: (by: readonly string[]) => void (notices = by),
    current: () => (view === undefined ? undefined : { position: String(updates.length), view: view as ClusterView }),
    since: (position: string) => (/^\d+$/.test(position) ? updates.slice(Number(position)) : undefined),
    subscribe: (onUpdate: (update: ViewUpdate) => void): Disposable => {
      subscribers.add(onUpdate);
      return { [Symbol.dispose]: () => void subscribers.delete(onUpdate) };
    },
    /** The next update. */
    push: (patch: object): void => {
      view = { ...(view as object | undefined), ...patch };
      const update = { position: String(updates.length + 1), patch };
      updates.push(update);
      for (const subscriber of subscribers) subscriber(update);
    },
  };
};

export const startTestApi = async (options: Partial<ApiOptions> = {}) => {
  const metrics = createMetrics();
  const accepted: [node: string, push: unknown][] = [];
  const view = testView();
  const part = createApiPart({
    port: 0,
    addresses: ['127.0.0.1'],
    certificate: testCertificate,
    // Agents are known by `agent:NODE`, viewers by `viewer:NAME`.
    agentAccess: async (token): Promise<Verdict<string>> =>
      token.startsWith('agent.') ? { isGranted: true, value: token.slice(6) } : unauthenticated,
    viewerAccess: async (token) =>
      token.startsWith('viewer.') ? { isGranted: true, value: { username: token.slice(7) } } : unauthenticated,
    parsePush: (value) => ({ ok: true, value: value as Push }),
    intake: {
      accept: async (node, push) => {
        accepted.push([node, push]);
        return 'accepted';
      },
    },
    view,
    forwarding: createLocalForwarding(() => performance.now()),
    parseForwarding,
    reports: {
      report: (node) => (node === 'n1' ? { report: { name: node } as unknown as NodeReport, ageMs: 5 } : undefined),
    },
    schemas: { Push: { type: 'object' }, NodeReport: { type: 'object' }, ClusterView: { type: 'object' } },
    logger: silentLogger,
    metrics: edgeMetrics(metrics),
    ...options,
  });
  await part.start();
  return {
    part,
    port: part.port,
    view,
    accepted,
    metrics,
    [Symbol.asyncDispose]: async () => part.stop(),
  };
};

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  readonly json: unknown;
}

const parsed = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
};

export interface Ask extends Pick<RequestOptions, 'method' | 'agent'> {
  readonly token?: string;
  readonly headers?: Record<string, string>;
  readonly body?: Buffer | string | undefined;
  /** Sends the body without its end. */
  readonly isOpen?: boolean;
}

export const ask = (port: number, path: string, options: Ask = {}): Promise<Answer> => {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const { token, headers = {}, body, isOpen = false, method = 'GET' } = options;
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const all = { ...authorization, ...headers };
  const outgoing = httpsRequest(
    { host: '127.0.0.1', port, path, method, agent: false, rejectUnauthorized: false, headers: all },
    (response) => {
      const chunks: Buffer[] = [];
      response.on('error', reject).on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const whole = Buffer.concat(chunks);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: whole, json: parsed(whole) });
        outgoing.destroy();
      });
    },
  );
  outgoing.on('error', reject);
  if (isOpen) outgoing.write(body ?? '');
  else outgoing.end(body);
  return promise;
};

export const report = (port: number, body: Buffer | string, headers: Record<string, string> = {}, token = 'agent.n1') =>
  ask(port, '/v1alpha1/reports', { method: 'POST', token, body, headers });

export interface StreamInit {
  readonly token?: string;
  readonly headers?: Record<string, string>;
  readonly protocols?: string[];
  readonly query?: string;
  readonly autoPong?: boolean;
}

/** A client of the live view, with all that it has received. */
export const dialStream = (port: number, options: StreamInit = {}) => {
  const { token, headers = {}, protocols = [], query = '', autoPong = true } = options;
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const socket = new WebSocket(`wss://127.0.0.1:${port}/v1alpha1/stream${query}`, protocols, {
    rejectUnauthorized: false,
    autoPong,
    headers: { ...authorization, ...headers },
  });
  const messages: {
    readonly type: string;
    readonly position: string;
    readonly patch?: unknown;
    readonly view?: unknown;
  }[] = [];
  const outcome = Promise.withResolvers<'open' | { readonly status: number; readonly body: string }>();
  const closed = Promise.withResolvers<number>();
  socket.on('message', (data: Buffer) => messages.push(JSON.parse(data.toString())));
  socket.on('open', () => outcome.resolve('open'));
  socket.on('close', (code) => closed.resolve(code));
  socket.on('error', () => outcome.resolve({ status: 0, body: '' }));
  socket.on('unexpected-response', (_, response) => {
    let body = '';
    response.on('data', (chunk: Buffer) => (body += chunk.toString()));
    response.on('end', () => outcome.resolve({ status: response.statusCode ?? 0, body }));
  });
  return {
    socket,
    messages,
    outcome: outcome.promise,
    closed: closed.promise,
    [Symbol.dispose]: () => socket.terminate(),
  };
};
