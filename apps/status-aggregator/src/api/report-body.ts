import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { createGunzip, type ZlibOptions } from 'node:zlib';

import { parseJson } from './json-text.ts';
import { malformed, Refusal } from './refusal.ts';

/** What one body, and all of them together, may cost. */
export interface BodyLimits {
  /** As it comes over the network. */
  readonly encodedBytes: number;
  /** After decompression. */
  readonly decodedBytes: number;
  /** From the first look until its last byte. */
  readonly readMs: number;
  /** Arrays and objects within each other. */
  readonly depth: number;
  /** Bodies that are read or decoded at the same time. */
  readonly atOnce: number;
}

const BODY_LIMITS: BodyLimits = {
  encodedBytes: 1 << 20,
  decodedBytes: 4 << 20,
  readMs: 10_000,
  depth: 32,
  atOnce: 16,
};

const tooLarge = (what: string, bytes: number): Refusal =>
  new Refusal({ status: 413, reason: 'TooLarge', message: `the ${what} is larger than ${bytes} bytes` });

/** What zlib says of bad input, for whoever sent it. */
const gzipError = ({ code, message }: NodeJS.ErrnoException): Refusal => {
  if (code === 'Z_BUF_ERROR') return malformed('the gzip stream is truncated');
  if (code === 'ERR_TRAILING_JUNK_AFTER_STREAM_END') return malformed('there is data after the end of the gzip stream');
  return malformed(`the gzip stream is invalid: ${message}`);
};

/** Absent from the types of Node 24.0 (added in 24.0): what follows the last member is an error, and not ignored. */
const GUNZIP_OPTIONS = { rejectGarbageAfterEnd: true } as ZlibOptions;

/**
 * Calls `settle` once: with the chunks, or with what is wrong. Ends at a bound as soon as it is passed, so that nothing beyond
 * it is held; the request is left open for the answer.
 */
const collect = (request: IncomingMessage, limits: BodyLimits, isGzip: boolean): Promise<Buffer> => {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const decoder = isGzip ? createGunzip(GUNZIP_OPTIONS) : undefined;
  const decoded: Readable = decoder ?? request;
  const chunks: Buffer[] = [];
  let received = 0;
  let bytes = 0;
  const onReceived = (chunk: Buffer): void => {
    received += chunk.length;
    if (received > limits.encodedBytes) fail(tooLarge('body', limits.encodedBytes));
  };
  const onDecoded = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > limits.decodedBytes) return fail(tooLarge('decompressed body', limits.decodedBytes));
    chunks.push(chunk);
  };
  const release = (): void => {
    clearTimeout(timer);
    request.off('data', onReceived).off('close', onClosed);
    decoded.off('data', onDecoded);
    if (decoder) request.unpipe(decoder);
  };
  const fail = (error: Refusal): void => {
    release();
    decoder?.destroy();
    request.pause();
    chunks.length = 0;
    reject(error);
  };
  const onClosed = (): void => {
    if (!request.readableEnded) fail(malformed('the connection ended within the body'));
  };
  const message = `the body did not arrive within ${limits.readMs} ms`;
  const timer = setTimeout(() => fail(new Refusal({ status: 408, reason: 'BodyTimeout', message })), limits.readMs);
  request.on('data', onReceived).on('close', onClosed).on('error', onClosed);
  decoder?.on('error', (error) => fail(gzipError(error)));
  decoded.on('data', onDecoded).once('end', () => {
    release();
    resolve(Buffer.concat(chunks, bytes));
  });
  if (decoder) request.pipe(decoder);
  if (request.destroyed) onClosed(); // while its token was reviewed: no event comes any more
  return promise;
};

const read = async (request: IncomingMessage, limits: BodyLimits): Promise<unknown> => {
  const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (encoding !== 'gzip' && encoding !== 'identity') {
    const message = 'Content-Encoding must be gzip or identity';
    throw new Refusal({ status: 415, reason: 'UnsupportedEncoding', message });
  }
  if (Number(request.headers['content-length']) > limits.encodedBytes) throw tooLarge('body', limits.encodedBytes);
  return parseJson(await collect(request, limits, encoding === 'gzip'), limits.depth);
};

export type ReadBody = (request: IncomingMessage) => Promise<unknown>;

/** Reads JSON bodies within limits. @throws Refusal */
export const createBodyReader = (options: Partial<BodyLimits> = {}): ReadBody => {
  const limits = { ...BODY_LIMITS, ...options };
  let reading = 0;
  return async (request) => {
    if (reading >= limits.atOnce) {
      const message = 'too many reports are being read at once';
      throw new Refusal({ status: 429, reason: 'TooManyBodies', message, retryAfterS: 1 });
    }
    reading++;
    try {
      return await read(request, limits);
    } finally {
      reading--;
    }
  };
};
