import type { NextFunction, Request, RequestHandler, Response } from 'express';

import type { ApiOptions } from './api.options.ts';
import { Refusal } from './refusal.ts';
import { createRequestPace, VIEWER_PACE } from './request-pace.ts';

/** Serves the description of the API, made once. Whoever comes may have it, and so all of them together have one bucket. */
export const serveDocument = (
  document: object,
  { metrics, elapsed }: Pick<ApiOptions, 'metrics' | 'elapsed'>,
): RequestHandler => {
  const json = JSON.stringify(document);
  const pace = createRequestPace({ ...VIEWER_PACE, elapsed });
  return (_: Request, response: Response, next: NextFunction) => {
    try {
      pace.take('');
    } catch (error) {
      if (!(error instanceof Refusal)) return next(error);
      metrics.rejected(error.reason); // Nest's filter sees only its own routes
      response.status(error.getStatus()).set(error.headers).json(error.getResponse());
      return;
    }
    response.type('application/json').send(json);
  };
};
