import { TailnetApiError } from './api/api-error.ts';
import { CredentialsMissingError } from './credentials.ts';

/** How the last request to the control server went, for all records, and whether it is our tailnet that answers. */

export interface TailnetFailure {
  /** CamelCase, of a condition. */
  readonly reason: string;
  readonly message: string;
  readonly retryAfterMs?: number;
}

/** It answers, but may be another tailnet than that of the devices. */
export class TailnetDoubtedError extends Error {
  override readonly name = 'TailnetDoubtedError';
}

/** What a condition says of an error; undefined: it is none of the tailnet's. */
export const tailnetFailure = (error: unknown): TailnetFailure | undefined => {
  if (error instanceof CredentialsMissingError) return { reason: 'CredentialsMissing', message: error.message };
  if (error instanceof TailnetDoubtedError) return { reason: 'NoDeviceKnown', message: error.message };
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
  /** Why it may be another tailnet; a request that goes well does not end that. */
  readonly doubt: string | undefined;
  setDoubt(message: string | undefined): void;
  /** Of another tailnet nothing is known. */
  reset(): void;
  /** Called when it turns. */
  on(handler: () => void): void;
}

export const createTailnetHealth = (): TailnetHealth => {
  let answered: TailnetHealth['state'];
  let doubt: string | undefined;
  const handlers: (() => void)[] = [];
  const tell = (): void => {
    for (const handler of handlers) handler();
  };
  return {
    get state() {
      if (doubt === undefined || answered?.failure) return answered;
      return { failure: { reason: 'NoDeviceKnown', message: doubt } };
    },
    get doubt() {
      return doubt;
    },
    report(error) {
      const failure = error === undefined ? undefined : tailnetFailure(error);
      if (error !== undefined && !(failure && concernsAll(failure))) return;
      const isNews = answered === undefined || answered.failure?.reason !== failure?.reason;
      if (!isNews) return; // another text of the same failure would be another write each time
      answered = failure ? { failure } : {};
      tell();
    },
    setDoubt(message) {
      if (doubt === message) return;
      doubt = message;
      tell();
    },
    reset: () => void ([answered, doubt] = [undefined, undefined]),
    on: (handler) => void handlers.push(handler),
  };
};
