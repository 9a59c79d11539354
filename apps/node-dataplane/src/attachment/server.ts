import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Logger } from '@unbounded/telemetry';
import { encodeAnswer } from './answer.codec.ts';
import { answerRequest, type Commands } from './cni-commands.ts';
import { type CniRequest, decodeRequest } from './request.codec.ts';

/** Answers the CNI binary (apps/cni) on a unix socket. */

/** Until a request is whole. Then it takes as long as it does: the binary knows how long it waits. */
const IDLE_MS = 30_000;
/** For answers that are under way when the server is closed: shorter than the agent has for its end. */
const CLOSE_MS = 3000;

export interface CniServerParts extends Commands {
  readonly logger: Logger;
  readonly closeMs?: number;
  readonly idleMs?: number;
}

const answer = async (socket: Socket, request: CniRequest, parts: CniServerParts): Promise<void> => {
  const answered = await answerRequest(request, parts);
  const bytes = encodeAnswer(answered);
  const { CNI_COMMAND: command, CNI_CONTAINERID: container } = request.environment;
  parts.logger.info({ command, container, exitCode: answered.exitCode }, 'CNI request');
  socket.end(bytes);
};

const serve = (socket: Socket, parts: CniServerParts): void => {
  const { logger } = parts;
  const refuse = (error: unknown): void => {
    logger.error({ error: (error as Error).message }, 'CNI request refused');
    socket.destroy();
  };
  let received = Buffer.alloc(0);
  let isAnswered = false;
  socket.setTimeout(parts.idleMs ?? IDLE_MS, () => socket.destroy());
  socket.on('error', (error) => logger.warn({ error: error.message }, 'CNI plugin disconnected'));
  socket.on('data', (chunk: Buffer) => {
    if (isAnswered) return;
    received = Buffer.concat([received, chunk]);
    try {
      const request = decodeRequest(received);
      if (!request) return;
      isAnswered = true;
      socket.setTimeout(0);
      answer(socket, request, parts).catch(refuse);
    } catch (error) {
      refuse(error);
    }
  });
};

export interface CniServer {
  /** Takes no connection any more, and resolves when all that are there have their answers, or have waited long enough. Twice is fine. */
  close(): Promise<void>;
}

/** Listens on a unix socket that only root may use. */
export const startCniServer = async (path: string, parts: CniServerParts): Promise<CniServer> => {
  mkdirSync(dirname(path), { recursive: true });
  rmSync(path, { force: true }); // what a killed process left
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    serve(socket, parts);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  chmodSync(path, 0o600);
  let closed: Promise<void> | undefined;
  return {
    close: () =>
      (closed ??= new Promise((resolve) => {
        const cut = setTimeout(() => {
          for (const socket of sockets) socket.destroy();
        }, parts.closeMs ?? CLOSE_MS);
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
      })),
  };
};
