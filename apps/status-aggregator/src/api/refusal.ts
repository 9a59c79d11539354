import { HttpException } from '@nestjs/common';

/** Words of `reason` in answers and metrics: a bounded set, whatever clients send. */
export type RefusalReason =
  | 'Unauthenticated'
  | 'Forbidden'
  | 'NotAnAgent'
  | 'NotBoundToNode'
  | 'ReviewUnavailable'
  | 'TooManyReviews'
  | 'UnsupportedEncoding'
  | 'TooLarge'
  | 'BodyTimeout'
  | 'TooManyBodies'
  | 'TooManyReports'
  | 'MalformedBody'
  | 'InvalidReport'
  | 'ResyncRequired'
  | 'NotYetComposed'
  | 'NodeUnknown'
  | 'InvalidName'
  | 'InvalidForwarding'
  | 'NotRequested'
  | 'NodeNotReporting'
  | 'TooManyNodesRequested'
  | 'RedisAway'
  | 'ForeignOrigin'
  | 'UnknownSubprotocol'
  | 'TooManyRequests'
  | 'TooManyBytesInFlight'
  | 'TooManyClients'
  | 'TooManyClientsOfUser'
  | 'ShuttingDown'
  | 'NotFound'
  | 'BadRequest'
  | 'InternalError';

export interface RefusalInit {
  readonly status: number;
  readonly reason: RefusalReason;
  readonly message: string;
  readonly retryAfterS?: number;
}

/** A request or an upgrade that is not served. The message goes to the client: it quotes neither token nor body. */
export class Refusal extends HttpException {
  readonly reason: RefusalReason;
  readonly headers: Readonly<Record<string, string>>;

  constructor({ status, reason, message, retryAfterS }: RefusalInit) {
    super({ reason, message }, status);
    this.reason = reason;
    this.headers = {
      ...(retryAfterS === undefined ? {} : { 'Retry-After': String(retryAfterS) }),
      ...(status === 401 ? { 'WWW-Authenticate': 'Bearer' } : {}),
    };
  }
}

export const malformed = (message: string): Refusal => new Refusal({ status: 400, reason: 'MalformedBody', message });
