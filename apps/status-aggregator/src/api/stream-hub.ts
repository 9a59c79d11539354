import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Logger } from '@unbounded/telemetry';
import type { WebSocket } from 'ws';

import { ReviewUnavailable } from '../access/verdict.ts';
import type { ViewerAccess } from '../access/viewer-access.ts';
import type { ViewStream, ViewUpdate } from '../intake.port.ts';
import type { EdgeMetrics } from './edge-metrics.ts';
import { createRunningClock, type RunningClock } from './running-clock.ts';
import type { Serializer } from './serialized-view.ts';
import type { StreamAdmission } from './stream-admission.ts';
import { StreamClient } from './stream-client.ts';
import type { StreamLimits } from './stream.limits.ts';

/** RFC 6455 7.4; those of applications end in the HTTP status that a request would have had. */
const CLOSE = {
  goingAway: 1001,
  internalError: 1011,
  tryAgainLater: 1013,
  unauthenticated: 4401,
  forbidden: 4403,
} as const;

export interface StreamHubOptions {
  readonly view: ViewStream;
  readonly serializer: Serializer;
  readonly admission: StreamAdmission;
  readonly access: ViewerAccess;
  readonly limits: StreamLimits;
  readonly metrics: EdgeMetrics;
  readonly logger: Logger;
  readonly now: () => Date;
}

/** All clients of the live view. */
export class StreamHub {
  readonly #options: StreamHubOptions;
  readonly #clients = new Set<StreamClient>();
  readonly #clock: RunningClock;
  #subscription: Disposable | undefined;
  /** What hinders the aggregator, as it was sent last. */
  #notices: readonly string[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(options: StreamHubOptions) {
    this.#options = options;
    this.#clock = createRunningClock(options.limits.tickMs);
  }

  start(): void {
    const { view, limits } = this.#options;
    this.#subscription = view.subscribe((update) => this.#publish(update));
    this.#timer = setInterval(() => this.#tick(), limits.tickMs);
  }

  add(socket: WebSocket, request: IncomingMessage): void {
    const { admission, limits, metrics } = this.#options;
    const admitted = admission.of(request);
    if (admitted === undefined) return socket.close(CLOSE.internalError);
    const client = new StreamClient(socket, admitted, limits, this.#clock.now);
    this.#clients.add(client);
    metrics.clients(this.#clients.size);
    socket.once('close', () => {
      this.#clients.delete(client);
      metrics.clients(this.#clients.size);
      metrics.disconnected(client.reason);
    });
    this.#begin(client);
  }

  /** Tells every client that it is over, and waits until they have gone, or not for longer than `closeMs`. */
  async close(): Promise<void> {
    const { admission, limits } = this.#options;
    admission.close();
    this.#subscription?.[Symbol.dispose]();
    clearInterval(this.#timer);
    for (const client of this.#clients) client.close(CLOSE.goingAway, 'shutting down', 'shutdown');
    const deadline = performance.now() + limits.closeMs;
    while (this.#clients.size > 0 && performance.now() < deadline) await sleep(10);
    for (const client of this.#clients) client.terminate('shutdown');
  }

  /** The updates that it missed, when they are still known, else the view. Without a view it waits for the first one. */
  #begin(client: StreamClient): void {
    const { view, serializer } = this.#options;
    const { position } = client.admission;
    const missed = position === undefined ? undefined : view.since(position);
    const notices = this.#notices.length === 0 ? [] : [serializer.notices(this.#notices)];
    if (position !== undefined && missed !== undefined) {
      const messages = missed.map((update) => serializer.update(update));
      client.begin(missed.at(-1)?.position ?? position, [...messages, ...notices]);
      return;
    }
    const current = serializer.view();
    if (current !== undefined) client.begin(current.position, [current.message, ...notices]);
  }

  #tellNotices(): void {
    const { view, serializer } = this.#options;
    const notices = view.notices?.() ?? [];
    if (notices.join('\n') === this.#notices.join('\n')) return;
    this.#notices = notices;
    const message = serializer.notices(notices);
    for (const client of this.#clients) client.notify(message);
  }

  #publish(update: ViewUpdate): void {
    const { serializer } = this.#options;
    if (update.patch === undefined) return this.#restart();
    const message = serializer.update(update);
    for (const client of this.#clients) {
      if (client.position === undefined) this.#begin(client);
      else client.update(update.position, message);
    }
  }

  #restart(): void {
    const current = this.#options.serializer.view();
    if (current === undefined) return;
    for (const client of this.#clients) client.restart(current.position, current.message);
  }

  #tick(): void {
    this.#clock.tick();
    const now = performance.now();
    const wallClock = this.#options.now();
    this.#tellNotices();
    for (const client of this.#clients) {
      client.check();
      const { expiresAt } = client.admission.viewer;
      if (expiresAt !== undefined && expiresAt <= wallClock) {
        client.close(CLOSE.unauthenticated, 'the token has expired', 'unauthenticated');
      } else if (client.isOpen && now >= client.recheckAt) void this.#recheck(client, now);
    }
  }

  async #recheck(client: StreamClient, now: number): Promise<void> {
    const { access, limits, logger } = this.#options;
    client.recheckAt = now + limits.recheckMs;
    try {
      const verdict = await access(client.admission.token);
      if (verdict.isGranted) return;
      if (verdict.status === 401) client.close(CLOSE.unauthenticated, verdict.message, 'unauthenticated');
      else client.close(CLOSE.forbidden, verdict.message, 'forbidden');
    } catch (error) {
      if (error instanceof ReviewUnavailable && error.reason === 'TooManyReviews') return; // the next time
      if (!(error instanceof ReviewUnavailable)) logger.error({ err: error }, 'a client could not be reviewed again');
      client.close(CLOSE.tryAgainLater, 'permission cannot be reviewed', 'review-unavailable');
    }
  }
}
