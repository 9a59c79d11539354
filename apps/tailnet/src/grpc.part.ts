import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
// oxlint-disable-next-line import/no-unassigned-import -- Nest's decorators ask for it when they are loaded
import 'reflect-metadata';
import type { DynamicModule, INestMicroservice } from '@nestjs/common';
import { loadPackage } from '@nestjs/common/internal';
import { NestFactory } from '@nestjs/core';
import { type GrpcOptions, Transport } from '@nestjs/microservices';
import type { HostPart } from '@unbounded/host';
import { TAILNET_PACKAGE, tailnetDefinition } from '@unbounded/tailnet-cni';
import type { Logger } from '@unbounded/telemetry';
import { CNI_REQUESTS, CniController } from './cni.controller.ts';
import type { CniRequests } from './cni-requests.ts';

// oxlint-disable-next-line typescript/no-extraneous-class -- Nest knows a module by a class
class CniModule {}

const cniModule = (service: CniRequests): DynamicModule => ({
  module: CniModule,
  controllers: [CniController],
  providers: [{ provide: CNI_REQUESTS, useValue: service }],
});

/** Of a request: a few names. */
const MOST_BYTES = 64 << 10;
/** The owner and its group: the agent of the node is root. */
const MODE = 0o660;

/** The gRPC service on a unix socket, from its creation to its end. */
export const createGrpcPart = (socketPath: string, service: CniRequests, logger: Logger): HostPart => {
  let app: INestMicroservice | undefined;
  return {
    name: 'grpc',
    get isReady() {
      return app !== undefined;
    },
    async start() {
      mkdirSync(dirname(socketPath), { recursive: true });
      rmSync(socketPath, { force: true }); // that of an agent before is nobody's
      // Into Nest's cache: it would look for them by `require`, which finds nothing beside a bundle.
      await loadPackage('@grpc/grpc-js', 'ServerGrpc', () => import('@grpc/grpc-js'));
      await loadPackage('@grpc/proto-loader', 'ServerGrpc', () => import('@grpc/proto-loader'));
      const created = await NestFactory.createMicroservice<GrpcOptions>(cniModule(service), {
        transport: Transport.GRPC,
        options: {
          package: TAILNET_PACKAGE,
          packageDefinition: tailnetDefinition(),
          url: `unix:${socketPath}`,
          maxReceiveMessageLength: MOST_BYTES,
        },
        logger: false,
        abortOnError: false,
      });
      await created.listen();
      chmodSync(socketPath, MODE);
      app = created;
      logger.info({ socket: socketPath }, 'serving pods of the node');
    },
    async stop() {
      await app?.close();
    },
  };
};
