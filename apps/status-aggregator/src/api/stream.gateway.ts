import type { IncomingMessage } from 'node:http';

import { type BeforeApplicationShutdown, Inject, type OnApplicationBootstrap } from '@nestjs/common';
import { type OnGatewayConnection, WebSocketGateway } from '@nestjs/websockets';
import type { WebSocket } from 'ws';

import { STREAM_HUB } from './api.tokens.ts';
import type { StreamHub } from './stream-hub.ts';
import { STREAM_PATH } from './stream.limits.ts';

/** The live view: the view once, then every update. Clients were admitted by `StreamAdapter`, before the upgrade. */
@WebSocketGateway({ path: STREAM_PATH })
export class StreamGateway implements OnGatewayConnection, OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly #hub: StreamHub;

  constructor(@Inject(STREAM_HUB) hub: StreamHub) {
    this.#hub = hub;
  }

  handleConnection(socket: WebSocket, request: IncomingMessage): void {
    this.#hub.add(socket, request);
  }

  onApplicationBootstrap(): void {
    this.#hub.start();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.#hub.close();
  }
}
