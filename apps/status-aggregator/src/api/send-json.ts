import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

import type { Request, Response } from 'express';

import { Refusal } from './refusal.ts';

const compress = promisify(gzip);
/** Less than this is not worth compressing: it is one packet either way. */
const COMPRESS_FROM_BYTES = 1024;

/**
 * Of answers that clients have not taken yet. The view is one buffer for all of them, but TLS holds each answer encrypted until it is
 * gone, and a client may take as long as it likes.
 */
export interface SendLimits {
  readonly bytesOfUser: number;
  readonly bytes: number;
  /** Then the connection is cut. */
  readonly sendMs: number;
}

const MIB = 1024 * 1024;
/** The view of 5,000 nodes is some MiB compressed: ten dashboards of a user have it at once. */
const SEND_LIMITS: SendLimits = { bytesOfUser: 64 * MIB, bytes: 256 * MIB, sendMs: 60_000 };

interface JsonAnswer {
  readonly user: string;
  readonly json: Buffer;
  /** Of `json`; compressed here when not set. */
  readonly gzipped?: () => Promise<Buffer>;
}

/** Answers with JSON, compressed for who takes that. @throws Refusal while too much is on its way */
export type SendJson = (request: Request, response: Response, answer: JsonAnswer) => Promise<void>;

const tooMuch = (): Refusal => {
  const message = 'too many bytes of earlier answers have not been taken yet';
  return new Refusal({ status: 429, reason: 'TooManyBytesInFlight', message, retryAfterS: 1 });
};

/** Bytes on their way, of each user and of all. An answer that is alone is never too large. */
const createFlight = (limits: SendLimits) => {
  const ofUsers = new Map<string, number>();
  let total = 0;
  const add = (user: string, bytes: number): void => {
    total += bytes;
    const sum = (ofUsers.get(user) ?? 0) + bytes;
    if (sum === 0) ofUsers.delete(user);
    else ofUsers.set(user, sum);
  };
  const isTooMuch = (user: string, bytes: number): boolean => {
    const own = ofUsers.get(user) ?? 0;
    return (own > 0 && own + bytes > limits.bytesOfUser) || (total > 0 && total + bytes > limits.bytes);
  };
  return {
    begin(user: string, response: Response, bytes: number): void {
      if (isTooMuch(user, bytes)) throw tooMuch();
      if (response.destroyed || response.closed) return; // 'close' has been told already
      add(user, bytes);
      const late = setTimeout(() => response.destroy(), limits.sendMs);
      response.once('close', () => {
        clearTimeout(late);
        add(user, -bytes);
      });
    },
  };
};

export const createJsonSender = (options: Partial<SendLimits> = {}): SendJson => {
  const flight = createFlight({ ...SEND_LIMITS, ...options });
  return async (request, response, { user, json, gzipped = () => compress(json) }) => {
    const isGzip = json.length >= COMPRESS_FROM_BYTES && request.acceptsEncodings(['gzip', 'identity']) === 'gzip';
    const body = isGzip ? await gzipped() : json;
    flight.begin(user, response, body.length);
    if (isGzip) response.setHeader('Content-Encoding', 'gzip');
    response.setHeader('Vary', 'Accept-Encoding, Authorization');
    response.setHeader('Content-Type', 'application/json; charset=utf-8');
    response.end(body);
  };
};
