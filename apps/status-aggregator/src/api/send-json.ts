import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

import type { Request, Response } from 'express';

const compress = promisify(gzip);
/** Less than this is not worth compressing: it is one packet either way. */
const COMPRESS_FROM_BYTES = 1024;

/** Answers with JSON, compressed for who takes that. */
export const sendJson = async (
  request: Request,
  response: Response,
  json: Buffer,
  gzipped: () => Promise<Buffer> = () => compress(json),
): Promise<void> => {
  const isGzip = json.length >= COMPRESS_FROM_BYTES && request.acceptsEncodings(['gzip', 'identity']) === 'gzip';
  if (isGzip) response.setHeader('Content-Encoding', 'gzip');
  response.setHeader('Vary', 'Accept-Encoding, Authorization');
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  response.end(isGzip ? await gzipped() : json);
};
