import { type CallHandler, type ExecutionContext, Inject, Injectable, type NestInterceptor } from '@nestjs/common';
import type { Request, Response } from 'express';
import { concatMap, type Observable } from 'rxjs';

import type { ForwardingExchange } from '../intake.port.ts';
import { FORWARDING_EXCHANGE } from './api.tokens.ts';
import { boundNode } from './guards.ts';

/**
 * Of an answer: what the node should tell besides, words with commas between. A header, since earlier agents take any other status than 204 for a
 * refusal; an agent passes over words that it does not know.
 */
export const WANTS_HEADER = 'Unbounded-Wants';

/** Tells an agent whose push was taken what somebody waits for. */
@Injectable()
export class TellWants implements NestInterceptor {
  readonly #exchange: ForwardingExchange;

  constructor(@Inject(FORWARDING_EXCHANGE) exchange: ForwardingExchange) {
    this.#exchange = exchange;
  }

  intercept(context: ExecutionContext, next: CallHandler<unknown>): Observable<unknown> {
    const http = context.switchToHttp();
    const tell = async (result: unknown): Promise<unknown> => {
      const node = boundNode(http.getRequest<Request>());
      if (node !== undefined && (await this.#exchange.isWanted(node)))
        http.getResponse<Response>().setHeader(WANTS_HEADER, 'forwarding');
      return result;
    };
    return next.handle().pipe(concatMap(tell));
  }
}
