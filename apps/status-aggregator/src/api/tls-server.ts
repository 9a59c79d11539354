import type { Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:net';

import type { Logger } from '@unbounded/telemetry';

import type { ServedCertificate } from './api.options.ts';

const TLS_OPTIONS = { minVersion: 'TLSv1.2' } as const;

/** Times of a connection that strangers may hold; those of bodies are shorter (`BodyLimits.readMs`). */
export const serverOptions = ({ cert, key }: ServedCertificate) => ({
  cert,
  key,
  ...TLS_OPTIONS,
  handshakeTimeout: 10_000,
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  keepAliveTimeout: 75_000, // agents report more often than that, over one connection
  maxHeaderSize: 16_384,
});

/** Looks for another certificate at each connection, before its handshake. One that cannot be used is logged, and the last one stays. */
export const followCertificate = (server: HttpsServer, certificate: () => ServedCertificate, logger: Logger): void => {
  let served = certificate();
  server.prependListener('connection', () => {
    const current = certificate();
    if (current === served) return;
    served = current;
    try {
      server.setSecureContext({ ...TLS_OPTIONS, cert: current.cert, key: current.key });
    } catch (error) {
      logger.error({ err: error }, 'the new serving certificate cannot be used; keeping the previous one');
    }
  });
};

const listen = async (server: Server, port: number, host: string): Promise<void> => {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).once('listening', resolve);
  server.listen({ port, host });
  await promise;
};

/** Further addresses of a server that listens at one already: their connections are its own. */
export const listenAlso = async (server: HttpsServer, addresses: readonly string[]): Promise<readonly Server[]> => {
  const { port } = server.address() as AddressInfo;
  const listeners: Server[] = [];
  for (const address of addresses) {
    const listener = createServer((socket) => void server.emit('connection', socket));
    listeners.push(listener);
    await listen(listener, port, address);
  }
  return listeners;
};
