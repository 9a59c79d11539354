import type { Server as HttpsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';

// oxlint-disable-next-line import/no-unassigned-import -- Nest's decorators ask for it when they are loaded
import 'reflect-metadata';
import { loadPackage } from '@nestjs/common/internal';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import type { HostPart } from '@unbounded/host';
import { limitConnections } from '@unbounded/host/connection-limit';

import { apiModule } from './api.module.ts';
import type { ApiOptions, LetIn } from './api.options.ts';
import { ADMIT_STREAM, EDGE_METRICS } from './api.tokens.ts';
import { serveDocument } from './openapi-document.ts';
import { openApiOf } from './openapi.ts';
import { servePage } from './page.ts';
import { type PageFile, readPageFiles } from './page-files.ts';
import { securityHeaders } from './security-headers.ts';
import { StreamAdapter } from './stream.adapter.ts';
import { followCertificate, listenAlso, serverOptions } from './tls-server.ts';

/** For requests that are being answered; then connections are cut. */
const FINISH_MS = 5000;

/** Agents of some thousand nodes come back at once after a restart, and each is let in by one review. */
const MOST_STRANGERS = 1024;

const createApplication = async (options: ApiOptions, letIn: LetIn): Promise<NestExpressApplication> => {
  // Into Nest's cache: WsAdapter would look for it by `require`, which finds nothing beside a bundle.
  await loadPackage('ws', 'StreamAdapter', () => import('ws'));
  const app = await NestFactory.create<NestExpressApplication>(apiModule(options, letIn), new ExpressAdapter(), {
    bodyParser: false,
    logger: false,
    abortOnError: false,
    httpsOptions: serverOptions(options.certificate()),
  });
  app.disable('x-powered-by');
  app.set('etag', false);
  app.use(securityHeaders);
  const { logger, dashboardDir } = options;
  const page = dashboardDir === undefined ? new Map<string, PageFile>() : await readPageFiles(dashboardDir);
  if (!page.has('/index.html')) logger.info({ dashboardDir }, 'the dashboard is not there; serving the API alone');
  app.use(servePage(page));
  app.useWebSocketAdapter(
    new StreamAdapter({ app, admission: app.get(ADMIT_STREAM), metrics: app.get(EDGE_METRICS), logger }),
  );
  const document = serveDocument(openApiOf(app, options.schemas), options);
  app.getHttpAdapter().getInstance().get('/openapi.json', document);
  return app;
};

export interface ApiPart extends HostPart {
  /** The TCP port that was taken. */
  readonly port: number;
}

/** The network edge: the Nest application, from its creation to its end. */
export const createApiPart = (options: ApiOptions): ApiPart => {
  const { port, addresses = [], certificate, logger, mostStrangers = MOST_STRANGERS } = options;
  const [first, ...more] = addresses;
  let app: NestExpressApplication | undefined;
  let server: HttpsServer | undefined;
  let others: readonly Server[] = [];
  return {
    name: 'api',
    get port() {
      return (server?.address() as AddressInfo | null | undefined)?.port ?? 0;
    },
    get isReady() {
      return server?.listening ?? false;
    },
    start: async () => {
      let letIn: LetIn = () => {};
      app = await createApplication(options, (connection) => letIn(connection));
      server = app.getHttpServer() as unknown as HttpsServer;
      letIn = limitConnections(server, { most: mostStrangers });
      followCertificate(server, certificate, logger);
      await (first === undefined ? app.listen(port) : app.listen(port, first));
      others = await listenAlso(server, more);
      logger.info({ addresses, port: (server.address() as AddressInfo).port }, 'serving the API');
    },
    stop: async () => {
      for (const other of others) other.close();
      const cut = setTimeout(() => server?.closeAllConnections(), FINISH_MS);
      await app?.close();
      clearTimeout(cut);
    },
  };
};
