import { getSystemErrorMap } from 'node:util';

/** The kernel or libbpf refused. */
export class BpfError extends Error {
  override readonly name = 'BpfError';
  /** Positive errno. */
  readonly errno: number;
  /** `E2BIG`, `EPERM`, … */
  readonly code: string;
  /** What libbpf and the verifier had to say; often empty. */
  readonly log: string;
  /** Of a batch: how many entries were done before the refusal. */
  readonly done: number;

  constructor(message: string, details: { errno: number; code: string; log?: string; done?: number; cause?: unknown }) {
    super(message, { cause: details.cause });
    this.errno = details.errno;
    this.code = details.code;
    this.log = details.log ?? '';
    this.done = details.done ?? 0;
  }
}

const LOG_LINES_IN_MESSAGE = 12;

const tail = (log: string): string => {
  const lines = log.trimEnd().split('\n').slice(-LOG_LINES_IN_MESSAGE);
  return lines.join('\n') === '' ? '' : `\n${lines.join('\n')}`;
};

/** Runs a call of the addon; a refusal says `what` it was about. */
export const attempt = <T>(what: string, call: () => T): T => {
  try {
    return call();
  } catch (cause) {
    const error = cause as { errno?: number; code?: string; log?: string; message: string };
    if (error.errno === undefined) throw cause; // a wrong argument or a closed handle: a mistake of the caller
    const { errno, code = '', log = '' } = error;
    throw new BpfError(`${what}: ${error.message}${tail(log)}`, { errno, code, log, cause });
  }
};

/** A batch that stopped. */
export const batchError = (what: string, errno: number, done: number): BpfError => {
  const [code, text] = getSystemErrorMap().get(-errno) ?? [`E${errno}`, 'unknown error'];
  return new BpfError(`${what}: ${text} (${code}) after ${done} entries`, { errno, code, done });
};
