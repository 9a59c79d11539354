import type { IncomingMessage } from 'node:http';

import { bearerOf } from '../access/bearer.ts';
import type { Viewer, ViewerAccess } from '../access/viewer-access.ts';
import type { LetIn } from './api.options.ts';
import { authorized } from './authorized.ts';
import { Refusal } from './refusal.ts';
import { offeredProtocols, STREAM_PROTOCOL, tokenOf } from './subprotocol.ts';

/** Who a client of the stream is. */
export interface Admission {
  readonly viewer: Viewer;
  /** For reviewing it again. */
  readonly token: string;
  /** The position that the client has, if any. */
  readonly position: string | undefined;
}

export interface StreamAdmission {
  /** Before the upgrade. @throws Refusal */
  admit(request: IncomingMessage): Promise<Admission>;
  /** What `admit` gave for a request. */
  of(request: IncomingMessage): Admission | undefined;
  /** From now on nobody is admitted. */
  close(): void;
}

export interface StreamAdmissionOptions {
  readonly access: ViewerAccess;
  readonly letIn: LetIn;
  readonly clients: number;
  readonly clientsOfUser: number;
}

/** A page of another site opens WebSockets with the user's cookies and certificates: browsers say where it comes from. */
const checkOrigin = ({ origin, host }: IncomingMessage['headers']): void => {
  if (origin === undefined) return;
  const isOurs = URL.canParse(origin) && new URL(origin).host === host?.toLowerCase();
  if (!isOurs) throw new Refusal({ status: 403, reason: 'ForeignOrigin', message: 'Origin and Host differ' });
};

const tokenIn = ({ headers }: IncomingMessage): string | undefined => {
  const offered = offeredProtocols(headers['sec-websocket-protocol']);
  if (offered.length > 0 && !offered.includes(STREAM_PROTOCOL)) {
    throw new Refusal({
      status: 400,
      reason: 'UnknownSubprotocol',
      message: `subprotocol ${STREAM_PROTOCOL} is needed`,
    });
  }
  return bearerOf(headers.authorization) ?? bearerOf(`Bearer ${tokenOf(offered) ?? ''}`);
};

const tooMany = (reason: 'TooManyClients' | 'TooManyClientsOfUser'): Refusal => {
  const message = reason === 'TooManyClients' ? 'too many clients' : 'too many clients of this user';
  return new Refusal({ status: 503, reason, message, retryAfterS: 10 });
};

/** Lets clients in, so many of each user and of all. A place is held from before the upgrade until the connection closes. */
export const createStreamAdmission = ({
  access,
  letIn,
  clients,
  clientsOfUser,
}: StreamAdmissionOptions): StreamAdmission => {
  const admissions = new WeakMap<IncomingMessage, Admission>();
  const places = new Map<string, number>();
  let taken = 0;
  let isClosed = false;
  const add = (username: string, by: 1 | -1): void => {
    taken += by;
    const count = (places.get(username) ?? 0) + by;
    if (count > 0) places.set(username, count);
    else places.delete(username);
  };
  const checkPlaces = (): void => {
    if (isClosed) {
      throw new Refusal({ status: 503, reason: 'ShuttingDown', message: 'shutting down', retryAfterS: 1 });
    }
    if (taken >= clients) throw tooMany('TooManyClients');
  };
  return {
    admit: async (request) => {
      checkOrigin(request.headers);
      const token = tokenIn(request);
      checkPlaces(); // before a review: a crowd costs the API server nothing
      const viewer = await authorized(token, access);
      checkPlaces();
      if ((places.get(viewer.username) ?? 0) >= clientsOfUser) throw tooMany('TooManyClientsOfUser');
      const { searchParams } = new URL(request.url ?? '/', 'https://localhost');
      const admission = { viewer, token: token ?? '', position: searchParams.get('position') ?? undefined };
      if (!request.socket.destroyed) {
        add(viewer.username, 1);
        request.socket.once('close', () => add(viewer.username, -1));
      }
      letIn(request.socket);
      admissions.set(request, admission);
      return admission;
    },
    of: (request) => admissions.get(request),
    close: () => {
      isClosed = true;
    },
  };
};
