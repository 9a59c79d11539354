import type { NextFunction, Request, RequestHandler, Response } from 'express';

import { isUnchanged } from './etag.ts';
import type { PageFile } from './page-files.ts';

/** Scripts, styles and requests of this server alone; nothing inline, and in no frame of others. */
const POLICY = [
  ["default-src 'self'", "connect-src 'self'", "style-src 'self'", "img-src 'self' data:"],
  ["object-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
]
  .flat()
  .join('; ');

const MISSING = {
  reason: 'NotFound',
  message:
    'the dashboard is not installed beside this program; the API is at /v1alpha1/ and described at /openapi.json',
};

const send = (request: Request, response: Response, file: PageFile): void => {
  response.set({
    'Content-Security-Policy': POLICY,
    'Cache-Control': file.isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    ETag: file.etag,
    Vary: 'Accept-Encoding',
  });
  if (isUnchanged(request.headers['if-none-match'], file.etag)) return void response.status(304).end();
  const gzipped = request.acceptsEncodings(['gzip', 'identity']) === 'gzip' ? file.gzipped : undefined;
  const body = gzipped ?? file.plain;
  if (gzipped) response.set('Content-Encoding', 'gzip');
  response.set({ 'Content-Type': file.type, 'Content-Length': String(body.length) });
  response.end(request.method === 'HEAD' ? undefined : body);
};

/**
 * The web page. Whoever comes may have it: there is no data in it. Its own pages are all at `/`, since what they show stands after `#`;
 * what is no file of it goes on to the API, which answers 404 for what it does not know either.
 */
export const servePage =
  (files: ReadonlyMap<string, PageFile>): RequestHandler =>
  (request: Request, response: Response, next: NextFunction) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return next();
    const { path } = request;
    const file = files.get(path === '/' ? '/index.html' : path);
    if (file) return send(request, response, file);
    if (path === '/') return void response.status(404).json(MISSING);
    next();
  };
