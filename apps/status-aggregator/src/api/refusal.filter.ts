import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Inject } from '@nestjs/common';
import type { Logger } from '@unbounded/telemetry';
import type { Request, Response } from 'express';

import { EDGE_LOGGER, EDGE_METRICS } from './api.tokens.ts';
import type { EdgeMetrics } from './edge-metrics.ts';
import { Refusal } from './refusal.ts';

/** What Nest and Express refuse by themselves: unknown routes, malformed addresses. */
const refusalOf = (error: unknown): Refusal | undefined => {
  if (error instanceof Refusal) return error;
  const status = error instanceof HttpException ? error.getStatus() : 500;
  if (status === 404) return new Refusal({ status, reason: 'NotFound', message: 'there is nothing at this path' });
  if (status < 500) return new Refusal({ status, reason: 'BadRequest', message: 'this request is not understood' });
  return undefined;
};

/** Answers `{reason, message}`, and counts. What is not expected is logged, and told to nobody. */
@Catch()
export class RefusalFilter implements ExceptionFilter {
  readonly #metrics: EdgeMetrics;
  readonly #logger: Logger;

  constructor(@Inject(EDGE_METRICS) metrics: EdgeMetrics, @Inject(EDGE_LOGGER) logger: Logger) {
    this.#metrics = metrics;
    this.#logger = logger;
  }

  catch(error: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>();
    const response = host.switchToHttp().getResponse<Response>();
    const known = refusalOf(error);
    if (!known) this.#logger.error({ err: error, method: request.method }, 'a request failed');
    const refusal = known ?? new Refusal({ status: 500, reason: 'InternalError', message: 'internal error' });
    this.#metrics.rejected(refusal.reason);
    if (response.headersSent || response.destroyed) return void response.destroy();
    if (!request.complete) response.setHeader('Connection', 'close'); // nobody reads the rest of the body
    response.status(refusal.getStatus()).set(refusal.headers).json(refusal.getResponse());
  }
}
