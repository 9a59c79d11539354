import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/**
 * A process that stays, and answers each line of its input by one line: `ok`, `ok TEXT`, or what is wrong. Where a test does the same thing
 * hundreds of times in another network namespace, it starts one process instead of hundreds.
 */

export interface LineServer {
  /** Of the program itself, where what starts it (nsenter without a fork) becomes it. */
  readonly pid: number | undefined;
  /** The text after `ok`; requests are answered in their order. @throws Error what the process answers instead, or why it does not answer */
  readonly ask: (line: string) => Promise<string>;
  /** At the end of its input it ends. */
  readonly end: () => void;
}

/** Only a defect makes a test wait that long: processes start in 20 s on a machine that is busy. */
const TIMEOUT_MS = 30_000;
/** Of what the process wrote to its stderr. */
const KEPT_CHARACTERS = 4000;

interface Pending {
  resolve(answer: string): void;
  reject(error: Error): void;
}

export const startLineServer = (
  command: string,
  args: readonly string[],
  { timeoutMs = TIMEOUT_MS }: { readonly timeoutMs?: number } = {},
): LineServer => {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let pending: Pending | undefined;
  let ended: Error | undefined;
  let stderr = '';
  let last: Promise<unknown> = Promise.resolve();
  const end = (reason: string): void => {
    ended ??= new Error([`${command}: ${reason}`, stderr.trim()].filter(Boolean).join(': '));
    pending?.reject(ended);
  };
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-KEPT_CHARACTERS)));
  child.stdin.on('error', () => undefined); // it ended before it read: its exit code says why
  child.on('error', (error) => end(error.message));
  child.on('close', (code, signal) => end(`ended with ${signal ?? code}`));
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [, text] = /^ok(?: (.*))?$/.exec(line) ?? [];
    if (/^ok( |$)/.test(line)) pending?.resolve(text ?? '');
    else pending?.reject(new Error(line));
  });
  const exchange = (line: string): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    if (ended) return Promise.reject(ended);
    pending = { resolve, reject };
    // A late answer would be taken for that of the next request.
    const timer = setTimeout(() => {
      end(`no answer within ${timeoutMs} ms to: ${line}`);
      child.kill('SIGKILL');
    }, timeoutMs);
    child.stdin.write(`${line}\n`);
    return promise.finally(() => {
      clearTimeout(timer);
      pending = undefined;
    });
  };
  return {
    pid: child.pid,
    ask(line) {
      const answer = last.then(() => exchange(line));
      last = answer.catch(() => undefined);
      return answer;
    },
    end: () => void child.stdin.end(),
  };
};
