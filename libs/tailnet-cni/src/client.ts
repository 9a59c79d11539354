import {
  Client,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceClientConstructor,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import {
  type AddRequest,
  type AddResponse,
  type CheckResponse,
  type ContainerRequest,
  TAILNET_PACKAGE,
  TAILNET_SERVICE,
  tailnetDefinition,
} from './service.ts';

/** Asks the tailnet agent of the node. */
export interface TailnetCni extends Disposable {
  /** @throws TailnetCniError */
  add(request: AddRequest, options: CallOptions): Promise<AddResponse>;
  /** @throws TailnetCniError */
  del(request: ContainerRequest, options: CallOptions): Promise<void>;
  /** @throws TailnetCniError */
  check(request: ContainerRequest, options: CallOptions): Promise<CheckResponse>;
}

interface CallOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export class TailnetCniError extends Error {
  override readonly name = 'TailnetCniError';
  /** none: the pod is to be no device. later: the agent does not answer, or cannot do it now. */
  readonly kind: 'none' | 'later';

  constructor(kind: 'none' | 'later', message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

const errorOf = (error: ServiceError, noAnswer: string): TailnetCniError => {
  const { code, details } = error;
  if (code === status.FAILED_PRECONDITION) return new TailnetCniError('none', details, { cause: error });
  // Cancelled: by us, when the time is over.
  return new TailnetCniError('later', code === status.CANCELLED ? noAnswer : details, { cause: error });
};

/** A device's addresses are a few bytes. */
const MOST_BYTES = 64 << 10;

export const createTailnetCni = (socketPath: string): TailnetCni => {
  const loaded = loadPackageDefinition(tailnetDefinition())[TAILNET_PACKAGE] as unknown as Record<
    string,
    ServiceClientConstructor
  >;
  const { service } = loaded[TAILNET_SERVICE]!;
  const client = new Client(`unix:${socketPath}`, credentials.createInsecure(), {
    'grpc.max_receive_message_length': MOST_BYTES,
    // A socket that is not there is looked for again with every call.
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 1000,
  });
  const call = <Response>(method: string, request: object, { timeoutMs, signal }: CallOptions) =>
    new Promise<Response>((resolve, reject) => {
      const { path, requestSerialize, responseDeserialize } = service[method]!;
      // Not by a deadline, which is a time of the wall clock.
      const timer = setTimeout(() => sent.cancel(), timeoutMs);
      const sent = client.makeUnaryRequest<object, Response>(
        path,
        requestSerialize as (request: object) => Buffer,
        responseDeserialize as (bytes: Buffer) => Response,
        request,
        new Metadata({ waitForReady: true }), // an agent that is being replaced is back in a moment
        (error, response) => {
          clearTimeout(timer);
          if (!error) return resolve(response!);
          reject(errorOf(error, `the tailnet agent does not answer at ${socketPath} within ${timeoutMs} ms`));
        },
      );
      signal?.addEventListener('abort', () => sent.cancel(), { once: true });
    });
  return {
    add: (request, options) => call('Add', request, options),
    del: async (request, options) => void (await call('Del', request, options)),
    check: (request, options) => call('Check', request, options),
    [Symbol.dispose]: () => client.close(),
  };
};
