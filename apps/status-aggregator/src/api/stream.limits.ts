export const STREAM_PATH = '/v1alpha1/stream';

/** What clients of the live view may cost, and how long each may be silent. */
export interface StreamLimits {
  readonly clients: number;
  readonly clientsOfUser: number;
  /** Not yet taken by the network when an update comes. */
  readonly bufferedBytes: number;
  /** Nothing of what is buffered was taken for so long. */
  readonly stallMs: number;
  readonly pingMs: number;
  /** Without a pong. */
  readonly pongMs: number;
  /** Between two reviews of a client's permission. */
  readonly recheckMs: number;
  /** How often all these are looked at. */
  readonly tickMs: number;
  /** For closing handshakes when the program ends. */
  readonly closeMs: number;
}

export const STREAM_LIMITS: StreamLimits = {
  clients: 200,
  clientsOfUser: 10,
  bufferedBytes: 1 << 20,
  stallMs: 15_000,
  pingMs: 10_000,
  pongMs: 20_000,
  recheckMs: 60_000,
  tickMs: 1000,
  closeMs: 2000,
};

/** Clients have nothing to say; what is longer or more is closed with 1008 (RFC 6455 7.4.1). */
export const MOST_MESSAGE_BYTES = 1024;
export const MOST_MESSAGES = 10;
/** ws gives up reading a message here, with 1009: nothing larger is ever held. */
export const MAX_PAYLOAD_BYTES = 16 * MOST_MESSAGE_BYTES;
