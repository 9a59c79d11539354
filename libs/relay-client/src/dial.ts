import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';

import type { Endpoint } from './endpoint.ts';

/** Opens a connection; it is open at `secureConnect` when the endpoint is one with TLS, else at `connect`. */
export type Dial = (endpoint: Endpoint) => Socket;

/** Of what TLS needs: the authorities to trust where they are not the system's, a client's certificate. */
export type TlsSettings = Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'minVersion' | 'checkServerIdentity'>;

/** Dials with the platform's sockets. TLS verifies the certificate against the endpoint's name or address. */
export const dialWith =
  (tls: TlsSettings = {}): Dial =>
  ({ host, port, isTls, serverName }) => {
    const options = { host, port, noDelay: true, keepAlive: true };
    if (!isTls) return connectTcp(options);
    const name = serverName ?? host;
    return connectTls({ ...options, ...tls, ...(isIP(name) === 0 && { servername: name }) });
  };
