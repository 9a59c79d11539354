import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

import { HttpException, type INestApplication } from '@nestjs/common';
import { WsAdapter } from '@nestjs/platform-ws';
import type { Logger } from '@unbounded/telemetry';

import type { EdgeMetrics } from './edge-metrics.ts';
import { Refusal } from './refusal.ts';
import type { StreamAdmission } from './stream-admission.ts';
import { MAX_PAYLOAD_BYTES, STREAM_PATH } from './stream.limits.ts';
import { STREAM_PROTOCOL } from './subprotocol.ts';

type Answer = (isAdmitted: boolean, status?: number, body?: string, headers?: Record<string, string>) => void;

export interface StreamAdapterOptions {
  readonly app: INestApplication;
  readonly admission: StreamAdmission;
  readonly metrics: EdgeMetrics;
  readonly logger: Logger;
}

const internal = (): Refusal =>
  new Refusal({ status: 500, reason: 'InternalError', message: 'the server could not decide about this client' });

/** WebSocket servers of Nest whose clients are admitted before the upgrade. */
export class StreamAdapter extends WsAdapter {
  readonly #options: StreamAdapterOptions;

  constructor(options: StreamAdapterOptions) {
    super(options.app, { messageParser: () => undefined }); // clients have nothing to say
    this.#options = options;
    const server = options.app.getHttpServer() as Server;
    server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
      socket.on('error', () => {}); // Nest answers what it does not understand on a socket that nobody else watches
      if (!request.url?.startsWith(STREAM_PATH)) options.metrics.rejected('NotFound'); // which WsAdapter cuts
    });
  }

  override create(port: number, options: object = {}): unknown {
    return super.create(port, {
      ...options,
      maxPayload: MAX_PAYLOAD_BYTES,
      perMessageDeflate: false, // memory for each client, and a message could not be framed once for all
      handleProtocols: (offered: ReadonlySet<string>) => (offered.has(STREAM_PROTOCOL) ? STREAM_PROTOCOL : false),
      verifyClient: ({ req }: { readonly req: IncomingMessage }, answer: Answer) => void this.#verify(req, answer),
    }) as unknown;
  }

  async #verify(request: IncomingMessage, answer: Answer): Promise<void> {
    const { admission, metrics, logger } = this.#options;
    try {
      await admission.admit(request);
      answer(true);
    } catch (error) {
      if (!(error instanceof Refusal)) logger.error({ err: error }, 'a client of the stream could not be admitted');
      const refusal = error instanceof Refusal ? error : internal();
      metrics.rejected(refusal.reason);
      answer(false, refusal.getStatus(), JSON.stringify((refusal as HttpException).getResponse()), {
        'Content-Type': 'application/json; charset=utf-8',
        'Cache-Control': 'no-store',
        ...refusal.headers,
      });
    }
  }
}
