/** metav1.Status, as the API server sends it with every refusal. */
export interface Status {
  readonly kind?: 'Status';
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: {
    readonly causes?: readonly { readonly field?: string; readonly message?: string }[];
    readonly retryAfterSeconds?: number;
  };
}

/** The API server refused a request. `status` is the HTTP status, `reason` its word (NotFound, Conflict, Invalid, …). */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly reason: string;
  readonly details: Status['details'];

  constructor(request: string, status: number, body: Status) {
    super(`${request}: ${status} ${body.message ?? body.reason ?? 'no reason given'}`);
    this.status = status;
    this.reason = body.reason ?? '';
    this.details = body.details;
  }
}

/** The API server could not be asked, or the connection broke. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
}

/** A request that was sent, and to which no answer began for the idle timeout: a webhook for what it writes may hang, beside a healthy server. */
export class NoAnswerError extends TransportError {}

/**
 * An answer that had begun, and of which no byte came for the idle timeout. A watch may be as silent as that beside a healthy server, which
 * sends no bookmark to a watch of a resource that has no objects: it goes on from the same version.
 */
export class IdleError extends TransportError {}

const hasStatus =
  (...statuses: readonly number[]) =>
  (error: unknown): boolean =>
    error instanceof ApiError && statuses.includes(error.status);

export const isNotFound = hasStatus(404);
/** Someone else changed the object since it was read, or it exists already (then the reason is AlreadyExists). */
export const isConflict = hasStatus(409);
/** A failed precondition inside a patch (`test` of a JSON patch). */
export const isInvalid = hasStatus(422);
/** The resourceVersion is too old: list again. */
export const isExpired = hasStatus(410);
export const isForbidden = hasStatus(403);

/**
 * For `catch`: what is not there is undefined when it was looked up, and needs no write any more when it was deleted meanwhile. Every other
 * error is thrown on.
 */
export const ignoreGone = (error: unknown): undefined => {
  if (!isNotFound(error)) throw error;
};
