import { type DestinationStream, type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino';

export type Logger = PinoLogger;
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Fields that must not reach a log, wherever an object with them is logged (up to three levels deep). */
const SECRET_FIELDS = [
  'authorization',
  'Authorization',
  'token',
  'privateKey',
  'password',
  'secret',
  'authKey',
  'clientKey',
];
const redactedPaths = SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]);

export interface LoggerOptions {
  /** The program, as `name` in every line. */
  readonly name: string;
  readonly level?: LogLevel;
  /** Where lines go: standard output when not set. */
  readonly destination?: DestinationStream;
}

/** One JSON object a line: `level` as word, `time` in RFC 3339, `name`, `msg` and what the caller adds. */
export const createLogger = ({ name, level = 'info', destination }: LoggerOptions): Logger => {
  const options = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: redactedPaths, censor: '[redacted]' },
  };
  const logger = destination ? pino(options, destination) : pino(options);
  return logger.child({ name });
};

/** For tests and for code whose caller wants no log. */
export const silentLogger: Logger = pino({ level: 'silent' });
