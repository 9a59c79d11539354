import { execFile, execFileSync } from 'node:child_process';

/** A program of the lab failed; the message holds the command and what it printed. */
class CommandError extends Error {
  override readonly name = 'CommandError';
}

interface Failure {
  status?: number | null;
  code?: number | string | null;
  stderr?: string | Buffer;
  stdout?: string | Buffer;
  message: string;
}

const explain = (argv: readonly string[], failure: Failure): CommandError => {
  const printed = String(failure.stderr ?? '').trim() || String(failure.stdout ?? '').trim() || failure.message;
  return new CommandError(`${argv.slice(0, 12).join(' ')}: ${printed.slice(-2000)}`);
};

const OUTPUT_LIMIT = 64 << 20;

/** Runs a short command and returns what it printed. @throws CommandError */
export const run = (argv: readonly string[], options: { input?: string; env?: NodeJS.ProcessEnv } = {}): string => {
  try {
    return execFileSync(argv[0]!, argv.slice(1), {
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'pipe'],
      maxBuffer: OUTPUT_LIMIT,
      ...options,
    });
  } catch (error) {
    throw explain(argv, error as Failure);
  }
};

/** Like {@link run} without blocking. @throws CommandError, also when `timeoutMs` ends it */
export const runAsync = (
  argv: readonly string[],
  options: { input?: string; timeoutMs?: number } = {},
): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = execFile(
      argv[0]!,
      argv.slice(1),
      { encoding: 'utf8', maxBuffer: OUTPUT_LIMIT, timeout: options.timeoutMs ?? 0, killSignal: 'SIGKILL' },
      (error, stdout, stderr) => {
        if (error) reject(explain(argv, { message: error.message, stdout, stderr }));
        else resolve(stdout);
      },
    );
    child.stdin?.on('error', () => undefined); // a program that ended early tells why by its status
    child.stdin?.end(options.input ?? '');
  });

/** Like {@link run}, but undefined when the command fails: for questions whose answer may be "no". */
export const tryRun = (argv: readonly string[]): string | undefined => {
  try {
    return run(argv);
  } catch {
    return undefined;
  }
};

/** Prefix that runs a command in a network namespace. */
export const inNamespace = (namespace: string): string[] => ['nsenter', `--net=/run/netns/${namespace}`, '--'];
