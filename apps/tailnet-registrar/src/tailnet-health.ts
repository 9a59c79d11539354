import { TailnetApiError } from './api/api-error.ts';
import { CredentialsMissingError } from './credentials.ts';

/** How the last request to the control server went, for all records. */

export interface TailnetFailure {
  /** CamelCase, of a condition. */
  readonly reason: string;
  readonly message: string;
  readonly retryAfterMs?: number;
}

/** What a condition says of an error; undefined: it is none of the tailnet's. */
export const tailnetFailure = (error: unknown): TailnetFailure | undefined => {
  if (error instanceof CredentialsMissingError) return { reason: 'CredentialsMissing', message: error.message };
  if (!(error instanceof TailnetApiError)) return undefined;
  const { failure: reason, message, retryAfterMs } = error;
  return { reason, message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
};

/** Of the server or the credentials, and so of all records alike. */
const concernsAll = ({ reason }: TailnetFailure): boolean =>
  reason === 'CredentialsMissing' || reason === 'CredentialsRefused' || reason === 'ControlServerUnreachable';

export interface TailnetHealth {
  /** Undefined: nothing was asked yet. */
  readonly state: { readonly failure?: TailnetFailure } | undefined;
  /** @param error absent: it went well */
  report(error?: unknown): void;
  /** Of another tailnet nothing is known. */
  reset(): void;
  /** Called when it turns. */
  on(handler: () => void): void;
}

export const createTailnetHealth = (): TailnetHealth => {
  let state: TailnetHealth['state'];
  const handlers: (() => void)[] = [];
  return {
    get state() {
      return state;
    },
    report(error) {
      const failure = error === undefined ? undefined : tailnetFailure(error);
      if (error !== undefined && !(failure && concernsAll(failure))) return;
      const isNews = state === undefined || state.failure?.reason !== failure?.reason;
      if (!isNews) return; // another text of the same failure would be another write each time
      state = failure ? { failure } : {};
      for (const handler of handlers) handler();
    },
    reset: () => void (state = undefined),
    on: (handler) => void handlers.push(handler),
  };
};
