import type { NextFunction, Request, Response } from 'express';

const HEADERS = {
  'Content-Security-Policy': "default-src 'self'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
} as const;

/** On every answer; answers of the API are of one moment and one caller, and no cache may keep them. */
export const securityHeaders = (request: Request, response: Response, next: NextFunction): void => {
  response.set(HEADERS);
  if (request.path.startsWith('/v1alpha1/')) response.set('Cache-Control', 'no-store');
  next();
};
